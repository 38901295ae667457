//! Arguments that several commands share.

use clap::ValueEnum;
use std::path::PathBuf;

use chrono::TimeDelta;
use longhaul_engine::RequestedBy;
use longhaul_server::{Limits, SetLimits};

use super::selection::SELECTION;

/// The heading of the options that are kept in the history.
const AUDIT: &str = "Audit";
/// The heading of the limits.
const LIMITS: &str = "Limits";

/// The requester, and the reason.
#[derive(Debug, clap::Args)]
pub(crate) struct RequestArguments {
    /// The reason, kept in the history
    #[arg(long, visible_alias = "reason", value_name = "TEXT", help_heading = AUDIT)]
    #[arg(default_value = "", hide_default_value = true)]
    pub(crate) why: String,
    /// The requester [default: the user]
    #[arg(long, visible_alias = "identity", value_name = "NAME", help_heading = AUDIT)]
    by: Option<String>,
}

impl RequestArguments {
    /// The requester from the command line or the environment, and the reason.
    pub(crate) fn request(&self) -> RequestedBy {
        let by = self.by.clone().unwrap_or_else(user);
        RequestedBy { by, why: self.why.clone() }
    }
}

/// The name of the user: from the environment, else from the system.
pub(crate) fn user() -> String {
    let named = |name: &str| std::env::var(name).ok().filter(|user| !user.is_empty());
    let system = || nix::unistd::User::from_uid(nix::unistd::getuid()).ok().flatten();
    named("USER")
        .or_else(|| named("LOGNAME"))
        .or_else(|| system().map(|user| user.name))
        .unwrap_or_else(|| nix::unistd::getuid().to_string())
}

/// Whether to wait for the effect of an order.
#[derive(Debug, clap::Args)]
pub(crate) struct Wait {
    /// Return when the runs have followed the order; exit code 3 if no process runs them
    #[arg(long, help_heading = LIMITS)]
    pub(crate) wait: bool,
    /// The most time that --wait takes; then the exit code is 3
    #[arg(long, value_name = "TIME", requires = "wait", value_parser = duration)]
    #[arg(help_heading = LIMITS)]
    pub(crate) timeout: Option<std::time::Duration>,
}

fn duration(text: &str) -> Result<std::time::Duration, String> {
    let parsed = span(text).and_then(|span| span.to_std().ok());
    parsed.ok_or_else(|| {
        format!("`{text}` is not a duration: write a number with s, m, h, d or w, like 10m")
    })
}

/// The scope in which features are looked up.
#[derive(Debug, clap::Args)]
pub(crate) struct ProjectScope {
    /// The project in which a feature id is looked up
    #[arg(long, default_value = ".", value_name = "DIR", help_heading = SELECTION)]
    pub(crate) dir: PathBuf,
}

/// One run.
#[derive(Debug, clap::Args)]
pub(crate) struct OneRun {
    /// The run: its id or a unique part of it; or a feature of the project: its last run
    #[arg(value_name = "RUN|FEATURE")]
    pub(crate) run: String,
    #[command(flatten)]
    pub(crate) scope: ProjectScope,
}

/// A run, a feature or a project.
#[derive(Debug, clap::Args)]
pub(crate) struct Target {
    /// The run: its id or a unique part of it; a feature: its last run; or a project (its id or its
    /// directory) [default: the project here]
    #[arg(value_name = "RUN|FEATURE|DIR")]
    pub(crate) target: Option<String>,
    #[command(flatten)]
    pub(crate) scope: ProjectScope,
}

/// Concurrency limits over all projects.
#[derive(Debug, clap::Args)]
pub(crate) struct AtOnce {
    /// Maximum number of agents that work at once, in all projects together [default: 8]
    #[arg(long = "max-agents", value_name = "N", help_heading = LIMITS)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) agents: Option<u32>,
    /// Maximum number of checks that run at once, in all projects together [default: the number of
    /// processors]
    #[arg(long = "max-checks", value_name = "N", help_heading = LIMITS)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) checks: Option<u32>,
}

impl AtOnce {
    /// The limits of the service.
    pub(crate) fn limits(&self) -> Limits {
        let processors = std::thread::available_parallelism().map_or(2, usize::from);
        Limits {
            agents: self.agents.map_or(8, |agents| agents as usize),
            checks: self.checks.map_or(processors, |checks| checks as usize),
        }
    }

    /// The change of the limits of a process that runs the log already; `None`: none was given.
    pub(crate) fn change(&self) -> Option<SetLimits> {
        let change = SetLimits {
            agents: self.agents.map(|agents| agents as usize),
            checks: self.checks.map(|checks| checks as usize),
        };
        (self.agents.is_some() || self.checks.is_some()).then_some(change)
    }
}

/// Parses a duration such as `30d`; `None` if it is invalid.
pub(super) fn span(text: &str) -> Option<TimeDelta> {
    let unit = text.chars().next_back()?;
    let number: i64 =
        text[..text.len() - unit.len_utf8()].parse().ok().filter(|number| *number >= 0)?;
    match unit {
        's' => TimeDelta::try_seconds(number),
        'm' => TimeDelta::try_minutes(number),
        'h' => TimeDelta::try_hours(number),
        'd' => TimeDelta::try_days(number),
        'w' => TimeDelta::try_weeks(number),
        _ => None,
    }
}

/// Output formats of a list on standard output.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ListOutput {
    /// Text for people
    #[default]
    Table,
    /// One JSON document with a `schema`
    Json,
    /// One JSON object for each item, one per line
    Jsonl,
    /// The ids only, one per line
    Ids,
}

/// Output formats of a history on standard output.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum EventsOutput {
    /// Text for people
    #[default]
    Table,
    /// One JSON document with a `schema`; with -f, printed when the run is closed
    Json,
    /// One JSON object for each event, one per line, as in a history file
    Jsonl,
}

/// Output formats of a conversation on standard output.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum TranscriptOutput {
    /// Text for people
    #[default]
    Table,
    /// One JSON document with a `schema`
    Json,
    /// One JSON object for each item of the conversation, one per line
    Jsonl,
}
