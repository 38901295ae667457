//! The arguments of `replay`, `export`, `import`, `backup` and other maintenance commands.

use std::path::PathBuf;

use chrono::TimeDelta;
use clap::ValueEnum;
use longhaul_workflows::projection::State;

use super::shared::span;
use super::{Output, ProjectScope};

/// Selection of runs in the log.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
pub(crate) struct RunSelection {
    /// One run: its id or a unique part of it; or a feature of the project: its last run
    #[arg(value_name = "RUN|FEATURE")]
    pub(crate) run: Option<String>,
    /// A project (its id or its directory): its run and all runs below it
    #[arg(long, value_name = "DIR|ID")]
    pub(crate) project: Option<String>,
    /// Every run of the log
    #[arg(long)]
    pub(crate) all: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Replay {
    /// Files: exports, backups, histories, directories of them; - for standard input; or runs or
    /// features of the log
    #[arg(value_name = "RUN|FEATURE|FILE")]
    #[arg(required_unless_present_any = ["project", "all"])]
    #[arg(conflicts_with_all = ["project", "all"])]
    pub(crate) targets: Vec<String>,
    /// A project of the log (its id or its directory): its run and all runs below it
    #[arg(long, value_name = "DIR|ID", conflicts_with = "all")]
    pub(crate) project: Option<String>,
    /// Every run of the log
    #[arg(long)]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) scope: ProjectScope,
    /// Output format of the verdicts
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: Output,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Export {
    #[command(flatten)]
    pub(crate) which: RunSelection,
    #[command(flatten)]
    pub(crate) scope: ProjectScope,
    /// Write to this file instead of standard output; compressed if its name ends in .zst
    #[arg(short = 'O', long, value_name = "FILE")]
    pub(crate) output_file: Option<PathBuf>,
    /// Overwrite an existing file
    #[arg(long)]
    pub(crate) force: bool,
    /// Output format of the report; JSON only with an output file
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: Output,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Import {
    /// An export, a backup or a history; - for standard input
    pub(crate) file: PathBuf,
    /// Only report the runs that would be imported
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Output format of the report
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: Output,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Backup {
    /// Write to this file, compressed if its name ends in .zst; - for standard output [default:
    /// longhaul-<time>.backup.zst]
    #[arg(short = 'O', long, value_name = "FILE")]
    pub(crate) output_file: Option<PathBuf>,
    /// Overwrite an existing file
    #[arg(long)]
    pub(crate) force: bool,
    /// Output format of the report; JSON only with an output file
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: Output,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Restore {
    /// The backup; - for standard input
    pub(crate) file: PathBuf,
    /// Output format of the report
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: Output,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Check {
    /// Repair damage: rewrite derived records from histories, remove unreferenced ones, move
    /// unreadable ones aside
    #[arg(long)]
    pub(crate) repair: bool,
    /// Output format of the report
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: Output,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Prune {
    /// Only runs that ended longer ago: 90m, 12h, 30d, 4w
    #[arg(long, value_name = "AGE", value_parser = age)]
    pub(crate) older_than: TimeDelta,
    /// Only runs with this outcome, as in `list`; several with commas [default: all closed runs]
    #[arg(long, value_enum, value_delimiter = ',', hide_default_value = true,
        default_values_t = RunOutcome::value_variants().to_vec())]
    pub(crate) status: Vec<RunOutcome>,
    /// Only runs of this project (its id or its directory)
    #[arg(long, value_name = "DIR|ID")]
    pub(crate) project: Option<String>,
    /// Only report the runs that would be pruned
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Do not ask for confirmation
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// Output format of the report
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: Output,
}

/// The outcome of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum RunOutcome {
    /// Completed: a feature that passed its gates
    Passed,
    /// Blocked: a feature that needs a person
    Blocked,
    /// Failed: no result
    Failed,
    /// Cancelled on request
    Cancelled,
}

impl RunOutcome {
    /// The corresponding state in `list`.
    pub(crate) fn state(self) -> State {
        match self {
            Self::Passed => State::Passed,
            Self::Blocked => State::Blocked,
            Self::Failed => State::Failed,
            Self::Cancelled => State::Cancelled,
        }
    }
}

#[derive(Debug, clap::Args)]
pub(crate) struct Doctor {
    /// The project
    #[arg(default_value = ".")]
    pub(crate) dir: PathBuf,
    /// Fix findings that can be fixed without risk
    #[arg(long)]
    pub(crate) fix: bool,
    /// Output format of the findings
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: Output,
}

pub(super) fn age(text: &str) -> Result<TimeDelta, String> {
    span(text)
        .ok_or_else(|| format!("`{text}` is no age: write a number with s, m, h, d or w, like 30d"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_read() {
        assert_eq!(age("30d"), Ok(TimeDelta::days(30)));
        assert_eq!(age("0s"), Ok(TimeDelta::zero()));
        for wrong in ["", "d", "30", "-1d", "3y", "9999999999999999d", "1.5h", "3ü"] {
            assert!(age(wrong).is_err(), "{wrong}");
        }
    }
}
