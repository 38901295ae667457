//! The arguments of `longhaul batch`.

use std::path::PathBuf;

use clap::ValueEnum;

use super::{AtOnce, Output};

#[derive(Debug, clap::Args)]
pub(crate) struct Batch {
    /// The plan: TOML or JSON
    pub(crate) file: PathBuf,
    /// Wait until there is no more progress without a person; this is the default
    #[arg(long, conflicts_with = "detach")]
    pub(crate) wait: bool,
    /// Hand the batch over to the process that runs this log, or to a new one in the background,
    /// and return at once
    #[arg(long)]
    pub(crate) detach: bool,
    #[command(flatten)]
    pub(crate) limits: AtOnce,
    /// Output format of progress
    #[arg(long, value_enum, default_value_t)]
    pub(crate) progress: Shown,
    /// Output format of the report; with --progress jsonl it is always the last line
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: Output,
    /// Also write the report as JUnit XML: a suite for each project, a case for each feature
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,
}

/// Output formats of progress.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Shown {
    /// Text for people, on standard error
    #[default]
    Text,
    /// A line of JSON for each change, on standard output, and the report as the last line
    Jsonl,
    /// No progress
    None,
}
