//! The arguments of `list`, `describe`, `history`, `logs`, `tree`, `graph` and `why`.

use std::path::PathBuf;

use chrono::{DateTime, Utc};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Subcommand, ValueEnum};

use super::shared::span;
use super::{OneRun, Output, Within};
use longhaul_server::views::KINDS;
use longhaul_workflows::projection::State;

/// The commands that look and change nothing.
#[derive(Debug, Subcommand)]
pub(crate) enum Look {
    /// List the runs of all projects, the newest first
    List(List),
    /// Show one run: where it stands, what it waits for, attempts, sessions, evidence
    #[command(visible_alias = "get")]
    Describe(Named),
    /// Show what happened to a run, event by event
    #[command(visible_alias = "show")]
    History(History),
    /// Show what the agent of a run printed
    Logs(Logs),
    /// Show a run, or a project, with all that is below it
    Tree(Tree),
    /// Draw the features of a project and what they need
    Graph(Graph),
    /// Say why a run or a feature does not go on, or why it failed
    Why(Named),
    /// Print the JSON Schema of a document that `-o json` gives; without a name, the names
    Schema(Schema),
}

fn state() -> impl TypedValueParser<Value = State> {
    let names = PossibleValuesParser::new(State::ALL.map(State::as_str));
    names.map(|name| name.parse().expect("one of the possible values"))
}

#[derive(Debug, clap::Args)]
pub(crate) struct List {
    /// Only runs of this project: its directory or its id
    #[arg(long, value_name = "DIR|ID")]
    pub(crate) project: Option<String>,
    /// Only runs in this state; may be repeated
    #[arg(long, value_name = "STATUS", value_delimiter = ',', value_parser = state())]
    pub(crate) status: Vec<State>,
    /// Only runs of this workflow
    #[arg(long, value_name = "WORKFLOW", value_parser = PossibleValuesParser::new(KINDS))]
    pub(crate) kind: Option<String>,
    /// Only runs of this feature
    #[arg(long, value_name = "ID")]
    pub(crate) feature: Option<String>,
    /// Only runs that started at this time or later: RFC 3339, or how long ago (90s, 10m, 2h, 3d)
    #[arg(long, value_name = "TIME", value_parser = moment)]
    pub(crate) since: Option<DateTime<Utc>>,
    /// Only runs that started before this time
    #[arg(long, value_name = "TIME", value_parser = moment)]
    pub(crate) until: Option<DateTime<Utc>>,
    /// Only runs with this label; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = label)]
    pub(crate) label: Vec<(String, String)>,
    /// At most so many
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) limit: u32,
    /// Go on behind the last page: the cursor that it gave
    #[arg(long, value_name = "CURSOR")]
    pub(crate) after: Option<String>,
    /// How it is written
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: Listed,
}

/// How a list is written to standard output.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Listed {
    /// For people
    #[default]
    Table,
    /// One JSON document with a `schema`
    Json,
    /// One JSON object for each run, each a line
    Jsonl,
    /// The ids alone, each a line
    Ids,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Named {
    #[command(flatten)]
    pub(crate) one: OneRun,
    /// How it is written
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: Output,
}

#[derive(Debug, clap::Args)]
pub(crate) struct History {
    #[command(flatten)]
    pub(crate) one: OneRun,
    /// With all that was given and what came back
    #[arg(long)]
    pub(crate) full: bool,
    /// Go on with what happens, until the run is over
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// How it is written
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: Events,
}

/// How a history is written to standard output.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Events {
    /// For people
    #[default]
    Table,
    /// One JSON document with a `schema`; of a run that is followed, when it is over
    Json,
    /// One JSON object for each event, each a line, as in a history file
    Jsonl,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Logs {
    #[command(flatten)]
    pub(crate) one: OneRun,
    /// Which session, from 1 [default: the latest]
    #[arg(long, value_name = "N")]
    pub(crate) session: Option<u32>,
    /// Go on with what is printed, until the run is over
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// The bytes as the agent printed them, with what a terminal obeys: colours, but also anything
    /// else
    #[arg(long)]
    pub(crate) raw: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Tree {
    /// A run or a feature, or the directory of a project [default: the project here]
    #[arg(value_name = "RUN|FEATURE|DIR")]
    pub(crate) target: Option<String>,
    #[command(flatten)]
    pub(crate) within: Within,
    /// How it is written
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: Output,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Graph {
    /// The project
    #[arg(default_value = ".")]
    pub(crate) dir: PathBuf,
    /// What it is drawn as
    #[arg(long = "as", value_name = "FORM", value_enum, default_value_t)]
    pub(crate) form: Form,
    /// How it is written; JSON has no drawing
    #[arg(short, long, value_enum, default_value_t, conflicts_with = "form")]
    pub(crate) output: Output,
}

/// What a graph is drawn as.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    /// Text for a terminal
    #[default]
    Text,
    /// Graphviz
    Dot,
    /// Mermaid, as many Markdown viewers draw it
    Mermaid,
    /// A picture
    Svg,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Schema {
    /// The document
    pub(crate) name: Option<String>,
}

/// A time: RFC 3339, or how long ago.
fn moment(text: &str) -> Result<DateTime<Utc>, String> {
    let unfit =
        || "a time is RFC 3339 (2026-01-31T12:00:00Z) or how long ago: 90s, 10m, 2h, 3d".to_owned();
    if let Ok(time) = DateTime::parse_from_rfc3339(text) {
        return Ok(time.to_utc());
    }
    span(text).and_then(|ago| Utc::now().checked_sub_signed(ago)).ok_or_else(unfit)
}

fn label(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("a label is KEY=VALUE")?;
    Ok((key.to_owned(), value.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_absolute_or_ago() {
        assert_eq!(
            moment("2026-01-31T12:00:00+02:00").unwrap().to_rfc3339(),
            "2026-01-31T10:00:00+00:00"
        );
        let age = |text| -(moment(text).unwrap() - Utc::now()).num_seconds();
        assert!((7200..7300).contains(&age("2h")) && (259_200..259_300).contains(&age("3d")));
        for unfit in ["", "h", "2 hours", "-2h", "2é", "yesterday", "99999999999999999d"] {
            assert!(moment(unfit).is_err(), "{unfit}");
        }
    }
}
