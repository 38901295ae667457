//! The arguments of the commands that send runs a message.

use longhaul_server::Filter;

use super::shared::SELECTION;
use super::{Asked, OneRun, Output, Wait, Within};

/// The common arguments of orders.
#[derive(Debug, clap::Args)]
pub(crate) struct Tell {
    #[command(flatten)]
    pub(crate) asked: Asked,
    /// All runs that match: project=, status=, kind=, feature=, label.NAME=; may be repeated, all
    /// must match
    #[arg(long = "filter", value_name = "KEY=VALUE", help_heading = SELECTION)]
    pub(crate) filters: Vec<Filter>,
    /// Limit for the number of runs
    #[arg(long, value_name = "N", help_heading = SELECTION)]
    pub(crate) limit: Option<usize>,
    /// Only report the runs that would receive the order
    #[arg(long, help_heading = SELECTION)]
    pub(crate) dry_run: bool,
    /// Do not ask for confirmation of several runs
    #[arg(short, long, help_heading = SELECTION)]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) wait: Wait,
    #[command(flatten)]
    pub(crate) within: Within,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: Output,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Steer {
    /// Projects (directories), runs or features (ids); - reads ids from standard input [default:
    /// the project here]
    pub(crate) targets: Vec<String>,
    #[command(flatten)]
    pub(crate) tell: Tell,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Answer {
    /// Features or runs; - reads ids from standard input
    #[arg(required_unless_present = "filters")]
    pub(crate) targets: Vec<String>,
    #[command(flatten)]
    pub(crate) tell: Tell,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Reply {
    #[command(flatten)]
    pub(crate) one: OneRun,
    /// The answer
    pub(crate) text: String,
    #[command(flatten)]
    pub(crate) asked: Asked,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: Output,
}

#[derive(Debug, clap::Args)]
#[command(
    override_usage = "longhaul signal [OPTIONS] <RUN> <NAME> [JSON]\n       longhaul signal [OPTIONS] --filter <KEY=VALUE> <NAME> [JSON]"
)]
pub(crate) struct Signal {
    /// The run (- reads ids from standard input) unless --filter is given; the name of the signal;
    /// its payload as JSON
    #[arg(required = true, num_args = 1..=3, value_name = "RUN NAME JSON")]
    pub(crate) words: Vec<String>,
    #[command(flatten)]
    pub(crate) tell: Tell,
}

#[derive(Debug, clap::Args)]
#[command(
    override_usage = "longhaul steer [OPTIONS] <RUN|FEATURE|DIR> <TEXT>\n       longhaul steer [OPTIONS] --filter <KEY=VALUE> <TEXT>"
)]
pub(crate) struct Text {
    /// The run, feature or project (- reads ids from standard input) unless --filter is given; the
    /// text
    #[arg(required = true, num_args = 1..=2, value_name = "RUN TEXT")]
    pub(crate) words: Vec<String>,
    #[command(flatten)]
    pub(crate) tell: Tell,
}
