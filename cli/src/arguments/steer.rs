//! The arguments of the commands that send runs a message.

use super::{OneRun, Output, ProjectScope, RequestArguments, Selection, Wait};

/// Arguments that all orders share: the request, the selected runs, the wait and the output.
#[derive(Debug, clap::Args)]
pub(crate) struct OrderArguments {
    #[command(flatten)]
    pub(crate) request: RequestArguments,
    #[command(flatten)]
    pub(crate) selection: Selection,
    #[command(flatten)]
    pub(crate) wait: Wait,
    #[command(flatten)]
    pub(crate) scope: ProjectScope,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: Output,
}

#[derive(Debug, clap::Args)]
pub(crate) struct OrderTargets {
    /// Projects (directories), runs or features (ids); - reads ids from standard input [default:
    /// the project here]
    pub(crate) targets: Vec<String>,
    #[command(flatten)]
    pub(crate) order: OrderArguments,
}

/// The features to approve or to send back.
#[derive(Debug, clap::Args)]
pub(crate) struct Verdict {
    /// Features or runs; - reads ids from standard input
    #[arg(required_unless_present = "filters")]
    pub(crate) targets: Vec<String>,
    #[command(flatten)]
    pub(crate) order: OrderArguments,
}

#[derive(Debug, clap::Args)]
pub(crate) struct AnswerArguments {
    #[command(flatten)]
    pub(crate) one: OneRun,
    /// The answer
    pub(crate) text: String,
    #[command(flatten)]
    pub(crate) request: RequestArguments,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: Output,
}

#[derive(Debug, clap::Args)]
#[command(override_usage = "longhaul signal [OPTIONS] <RUN> <NAME> [JSON]\n\
                  \x20      longhaul signal [OPTIONS] --filter <KEY=VALUE> <NAME> [JSON]")]
pub(crate) struct Signal {
    /// The run (- reads ids from standard input) unless --filter is given; the name of the signal;
    /// its payload as JSON
    #[arg(required = true, num_args = 1..=3, value_name = "RUN NAME JSON")]
    pub(crate) words: Vec<String>,
    #[command(flatten)]
    pub(crate) order: OrderArguments,
}

#[derive(Debug, clap::Args)]
#[command(override_usage = "longhaul steer [OPTIONS] <RUN|FEATURE|DIR> <TEXT>\n\
                  \x20      longhaul steer [OPTIONS] --filter <KEY=VALUE> <TEXT>")]
pub(crate) struct SteerArguments {
    /// The run, feature or project (- reads ids from standard input) unless --filter is given; the
    /// text
    #[arg(required = true, num_args = 1..=2, value_name = "RUN TEXT")]
    pub(crate) words: Vec<String>,
    #[command(flatten)]
    pub(crate) order: OrderArguments,
}
