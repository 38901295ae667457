//! The arguments of `agent`.

use std::path::PathBuf;

use chrono::TimeDelta;
use clap::{Subcommand, ValueEnum};
use longhaul_workflows::backlog::FeatureId;

use super::maintenance::{RunOutcome, age};
use super::session::SessionList;
use super::{AtOnce, Checkpoint, Output};

#[derive(Debug, clap::Args)]
pub(crate) struct Agent {
    #[command(subcommand)]
    pub(crate) command: AgentCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AgentCommand {
    /// Run the agent of a project: on all features, or on one
    ///
    /// With --feature, only that feature and those that it depends on are started, and the command
    /// ends when the feature has passed or needs a person. Features in progress continue.
    Run(AgentRun),
    /// Run the agent on one feature over as many sessions as it needs, until it passes or needs a
    /// person
    ///
    /// As `agent run --feature FEATURE --resume`.
    Orchestrate(Orchestrate),
    /// Record the current work tree of a feature, as `checkpoint` does
    Checkpoint(Checkpoint),
    /// List the sessions of a project, feature or run, as `session list` does; or drop old ones
    Sessions(AgentSessions),
}

#[derive(Debug, clap::Args)]
pub(crate) struct AgentRun {
    /// The project
    #[arg(default_value = ".", value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// Only this feature, and those that it depends on
    #[arg(long, value_name = "FEATURE", value_parser = feature)]
    pub(crate) feature: Option<FeatureId>,
    /// Continue the feature from its last step if it is blocked, paused or cancelled
    #[arg(long, requires = "feature", conflicts_with = "session")]
    pub(crate) resume: bool,
    /// Continue from the commit after this session, in a new run of its feature, as `fork` does
    #[arg(long, value_name = "ID", conflicts_with = "feature")]
    pub(crate) session: Option<String>,
    #[command(flatten)]
    pub(crate) limits: AtOnce,
    /// Output format of the summary
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: Output,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Orchestrate {
    /// The feature
    #[arg(value_parser = feature)]
    pub(crate) feature: FeatureId,
    /// The project
    #[arg(long, default_value = ".", value_name = "DIR")]
    pub(crate) dir: PathBuf,
    #[command(flatten)]
    pub(crate) limits: AtOnce,
    /// Output format of the summary
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: Output,
}

#[derive(Debug, clap::Args)]
pub(crate) struct AgentSessions {
    #[command(flatten)]
    pub(crate) list: SessionList,
    /// Drop the histories of the project's runs that ended longer ago than --older-than, as `prune`
    /// does; not those of one feature or run alone
    #[arg(long)]
    pub(crate) prune: bool,
    /// With --prune: only runs that ended longer ago: 90m, 12h, 30d, 4w
    #[arg(long, value_name = "AGE", value_parser = age, default_value = "30d", requires = "prune")]
    pub(crate) older_than: TimeDelta,
    /// With --prune: only runs with this outcome; several with commas [default: all closed runs]
    #[arg(long, value_enum, value_delimiter = ',', hide_default_value = true, requires = "prune",
        default_values_t = RunOutcome::value_variants().to_vec())]
    pub(crate) status: Vec<RunOutcome>,
    /// With --prune: only report the runs that would be pruned
    #[arg(long, requires = "prune")]
    pub(crate) dry_run: bool,
    /// With --prune: do not ask for confirmation
    #[arg(short, long, requires = "prune")]
    pub(crate) yes: bool,
}

fn feature(text: &str) -> Result<FeatureId, String> {
    FeatureId::new(text).map_err(|error| error.to_string())
}
