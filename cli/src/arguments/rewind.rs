//! The arguments of `fork`, `restart`, `rollback` and `checkpoint`.

use longhaul_server::ForkPoint;

use super::key_value::key_value;
use super::{OneRun, Output, ProjectScope, RequestArguments, Selection, Target};

/// The runs of features to fork or restart.
#[derive(Debug, clap::Args)]
pub(crate) struct Runs {
    /// Runs or features (ids); - reads ids from standard input
    #[arg(value_name = "RUN|FEATURE", required_unless_present = "filters")]
    pub(crate) targets: Vec<String>,
    #[command(flatten)]
    pub(crate) selection: Selection,
    #[command(flatten)]
    pub(crate) scope: ProjectScope,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Fork {
    #[command(flatten)]
    pub(crate) runs: Runs,
    /// The step: `start`; `last`: the last one with a commit; `before-failure`: before the session
    /// that failed or whose work failed its checks; `session:N`; `checkpoint:N`; or a position in
    /// the history. `longhaul checkpoints RUN` lists them
    #[arg(long, value_name = "STEP", visible_alias = "event-id")]
    pub(crate) from: ForkPoint,
    /// A note for the agent at its next session
    #[arg(long, value_name = "TEXT")]
    pub(crate) note: Option<String>,
    /// Change the input of the run: a dotted path below `settings` or `feature`, and a value; may
    /// be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_value)]
    pub(crate) set: Vec<(String, String)>,
    #[command(flatten)]
    pub(crate) request: RequestArguments,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: Output,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Restart {
    #[command(flatten)]
    pub(crate) runs: Runs,
    #[command(flatten)]
    pub(crate) request: RequestArguments,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: Output,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Rollback {
    /// The projects: directories or ids; - reads ids from standard input
    #[arg(value_name = "DIR|PROJECT", required_unless_present = "filters")]
    pub(crate) targets: Vec<String>,
    #[command(flatten)]
    pub(crate) selection: Selection,
    /// A commit of the target branch, or a feature: the commit at which it landed
    #[arg(long, value_name = "COMMIT|FEATURE")]
    pub(crate) to: String,
    #[command(flatten)]
    pub(crate) request: RequestArguments,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: Output,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Checkpoint {
    #[command(flatten)]
    pub(crate) one: OneRun,
    /// A note for the list of checkpoints
    #[arg(long, default_value = "", value_name = "TEXT")]
    pub(crate) note: String,
    #[command(flatten)]
    pub(crate) request: RequestArguments,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: Output,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Checkpoints {
    #[command(flatten)]
    pub(crate) target: Target,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: Output,
}
