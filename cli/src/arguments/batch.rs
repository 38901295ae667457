//! The arguments of `longhaul batch`.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::{Subcommand, ValueEnum};

use super::{AtOnce, Output};

#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct Batch {
    #[command(subcommand)]
    pub(crate) command: Option<BatchCommand>,
    /// The plan: TOML or JSON
    #[arg(required = true)]
    file: Option<PathBuf>,
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

impl Batch {
    /// The plan.
    pub(crate) fn file(&self) -> Result<&Path> {
        self.file.as_deref().context("the file of the batch is missing")
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum BatchCommand {
    /// Show the states of the projects of a batch, also while it runs
    Status(BatchOf),
}

#[derive(Debug, clap::Args)]
pub(crate) struct BatchOf {
    /// The id of the batch
    pub(crate) id: String,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: Output,
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
