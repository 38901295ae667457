//! The arguments of `longhaul batch`.

use std::path::PathBuf;

use clap::ValueEnum;

use super::{AtOnce, Output};

#[derive(Debug, clap::Args)]
pub(crate) struct Batch {
    /// The plan: TOML or JSON
    pub(crate) file: PathBuf,
    /// Stay until nothing more happens without a person; that is the default
    #[arg(long, conflicts_with = "detach")]
    pub(crate) wait: bool,
    /// Hand it over to the process that runs this log, or to a new one in the background, and
    /// return at once
    #[arg(long)]
    pub(crate) detach: bool,
    #[command(flatten)]
    pub(crate) limits: AtOnce,
    /// How what happens is shown
    #[arg(long, value_enum, default_value_t)]
    pub(crate) progress: Shown,
    /// How the report is written; behind the lines of --progress json it is always their last
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: Output,
    /// Also write the report as JUnit XML: a suite for each project, a case for each feature
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,
}

/// How progress is shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Shown {
    /// For people, on standard error
    #[default]
    Text,
    /// A line of JSON for each change, on standard output, and the report as the last line
    Jsonl,
    /// Not at all
    None,
}
