//! The arguments of the read-only commands, except `session` and `usage`.

use std::path::PathBuf;

use chrono::{DateTime, Utc};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Subcommand, ValueEnum};

use super::key_value::key_value;
use super::session::Session;
use super::shared::{EventsOutput, ListOutput, span};
use super::usage::Usage;
use super::{OneRun, Output, Target};
use longhaul_server::RunKind;
use longhaul_workflows::projection::State;

/// The read-only commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Look {
    /// List the runs of all projects, the newest first
    List(List),
    /// Show one run: its state, its waits, attempts, sessions, evidence
    #[command(visible_alias = "get")]
    Describe(Named),
    /// Show the events of a run
    #[command(visible_alias = "show")]
    History(History),
    /// Show the output of the agent of a run
    Logs(Logs),
    /// Show a run or a project with all runs below it
    Tree(Tree),
    /// Draw the dependency graph of the features of a project
    Graph(Graph),
    /// Explain why a run or a feature makes no progress, or why it failed
    Why(Named),
    /// Look at sessions of agents: their records, conversations and handoffs
    Session(Session),
    /// Show the turns, tokens and cost of agents, by feature, project, model or day
    Usage(Usage),
}

fn kind() -> impl TypedValueParser<Value = RunKind> {
    PossibleValuesParser::new(RunKind::NAMES).map(|name| RunKind::named(&name))
}

fn state() -> impl TypedValueParser<Value = State> {
    let names = PossibleValuesParser::new(State::ALL.map(State::word));
    names.try_map(|name| name.parse())
}

#[derive(Debug, clap::Args)]
pub(crate) struct List {
    /// Only runs of this project: its directory or its id
    #[arg(long, value_name = "DIR|ID")]
    pub(crate) project: Option<String>,
    /// Only runs with this status; may be repeated
    #[arg(long, value_name = "STATUS", value_delimiter = ',', value_parser = state())]
    pub(crate) status: Vec<State>,
    /// Only runs of this kind
    #[arg(long, value_name = "KIND", value_parser = kind())]
    pub(crate) kind: Option<RunKind>,
    /// Only runs of this feature
    #[arg(long, value_name = "ID")]
    pub(crate) feature: Option<String>,
    /// Only runs that started at this time or later: RFC 3339, or an age (90s, 10m, 2h, 3d, 1w)
    #[arg(long, value_name = "TIME", value_parser = moment)]
    pub(crate) since: Option<DateTime<Utc>>,
    /// Only runs that started before this time
    #[arg(long, value_name = "TIME", value_parser = moment)]
    pub(crate) until: Option<DateTime<Utc>>,
    /// Only runs with this label; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_value)]
    pub(crate) label: Vec<(String, String)>,
    /// Also runs that a later run of their feature superseded
    #[arg(short, long)]
    pub(crate) all: bool,
    /// Maximum number of runs
    #[arg(long, value_name = "N", default_value_t = 50)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) limit: u32,
    /// Continue after the last page: the cursor that it printed
    #[arg(long, value_name = "CURSOR")]
    pub(crate) after: Option<String>,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: ListOutput,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Named {
    #[command(flatten)]
    pub(crate) target: Target,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: Output,
}

#[derive(Debug, clap::Args)]
pub(crate) struct History {
    #[command(flatten)]
    pub(crate) target: Target,
    /// Include the inputs and outputs of each step
    #[arg(long)]
    pub(crate) full: bool,
    /// Follow: print new events until the run is closed
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: EventsOutput,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Logs {
    #[command(flatten)]
    pub(crate) one: OneRun,
    /// Which session, from 1 [default: the latest]
    #[arg(long, value_name = "N")]
    pub(crate) session: Option<u32>,
    /// Follow: print new output until the run is closed
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// Print the bytes of the agent unchanged, including all terminal control sequences
    #[arg(long)]
    pub(crate) raw: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Tree {
    #[command(flatten)]
    pub(crate) target: Target,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: Output,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Graph {
    /// The project
    #[arg(default_value = ".")]
    pub(crate) dir: PathBuf,
    /// Drawing format
    #[arg(long = "as", value_name = "FORMAT", value_enum, default_value_t)]
    pub(crate) form: GraphForm,
    /// How many features the text shows at most; the other formats and JSON show all
    #[arg(long, value_name = "N", default_value_t = 200)]
    pub(crate) limit: usize,
    /// Output format; JSON contains no drawing
    #[arg(short, long, value_enum, default_value_t, conflicts_with = "form")]
    pub(crate) output: Output,
}

/// Drawing formats of a graph.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum GraphForm {
    /// Text for a terminal
    #[default]
    Text,
    /// Graphviz
    Dot,
    /// Mermaid, for Markdown viewers
    Mermaid,
    /// SVG
    Svg,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Schema {
    /// The document
    pub(crate) name: Option<String>,
}

/// A point in time: RFC 3339, or an age.
fn moment(text: &str) -> Result<DateTime<Utc>, String> {
    let invalid = || {
        "a time is RFC 3339 (2026-01-31T12:00:00Z) or how long ago: 90s, 10m, 2h, 3d, 1w".to_owned()
    };
    if let Ok(time) = DateTime::parse_from_rfc3339(text) {
        return Ok(time.to_utc());
    }
    span(text).and_then(|ago| Utc::now().checked_sub_signed(ago)).ok_or_else(invalid)
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
        for invalid in ["", "h", "2 hours", "-2h", "2é", "yesterday", "99999999999999999d"] {
            assert!(moment(invalid).is_err(), "{invalid}");
        }
    }
}
