//! Arguments that several commands share.

use std::path::PathBuf;

use chrono::TimeDelta;
use longhaul_engine::RequestedBy;
use longhaul_server::Limits;

/// The requester, and the reason.
#[derive(Debug, clap::Args)]
pub(crate) struct Asked {
    /// The reason, kept in the history
    #[arg(long, alias = "reason", default_value = "", value_name = "TEXT")]
    pub(crate) why: String,
    /// The requester [default: the user]
    #[arg(long, value_name = "NAME")]
    by: Option<String>,
}

impl Asked {
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

/// The scope in which features are looked up.
#[derive(Debug, clap::Args)]
pub(crate) struct Within {
    /// The project in which a feature id is looked up
    #[arg(long, default_value = ".", value_name = "DIR")]
    pub(crate) dir: PathBuf,
}

/// One run.
#[derive(Debug, clap::Args)]
pub(crate) struct OneRun {
    /// The run: its id or a unique part of it; or a feature of the project: its last run
    #[arg(value_name = "RUN|FEATURE")]
    pub(crate) run: String,
    #[command(flatten)]
    pub(crate) within: Within,
}

/// Concurrency limits over all projects.
#[derive(Debug, clap::Args)]
pub(crate) struct AtOnce {
    /// Maximum number of agents that work at once, in all projects together
    #[arg(long = "max-agents", default_value_t = 8, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) agents: u32,
    /// Maximum number of checks that run at once, in all projects together [default: the number of
    /// processors]
    #[arg(long = "max-checks", value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) checks: Option<u32>,
}

impl AtOnce {
    /// The limits of the service.
    pub(crate) fn limits(&self) -> Limits {
        let processors = std::thread::available_parallelism().map_or(2, usize::from);
        Limits {
            agents: self.agents as usize,
            checks: self.checks.map_or(processors, |checks| checks as usize),
        }
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
