//! The command line.

mod again;
mod backlog;
mod batch;
mod carry;
pub(crate) mod look;
mod shared;
mod steer;

use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};

pub(crate) use again::{Checkpoint, Checkpoints, Fork, Restart, Rollback};
pub(crate) use backlog::{FeatureExport, FeatureImport};
pub(crate) use batch::{Batch, Shown};
pub(crate) use carry::{Backup, Check, Doctor, Export, Import, Prune, Replay, Restore};
pub(crate) use shared::{Asked, AtOnce, OneRun, Within};
pub(crate) use steer::{Answer, Signal, Steer, Tell, Text};

const EXIT_CODES: &str = "Exit codes: 0 ok · 1 a finding (a feature is blocked) · 2 usage, settings or list wrong · \
                          3 suspended (a person or a limit is waited for) · 4 operational (log, disk, git) · 5 partial";

/// A durable executor for long-running coding agents.
#[derive(Debug, Parser)]
#[command(name = "longhaul", version, after_help = EXIT_CODES, disable_help_subcommand = true)]
pub(crate) struct Arguments {
    /// Where the log is [default: longhaul in the XDG data directory]
    #[arg(long, global = true, env = "LONGHAUL_HOME", value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,

    /// Say more; twice for debugging
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,

    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Write longhaul.toml, a feature list and init.sh to start from
    Init(Init),
    /// Run projects until every feature passes its checks or needs a person
    Run(Run),
    /// Run many projects under one id, some after others; submitted again, it goes on
    Batch(Batch),
    /// Show where a project stands, also while another process runs it
    Status(Show),
    /// Read and change the features of a project
    Feature(Feature),
    #[command(flatten)]
    Look(look::Look),
    /// Stop projects, or one run, before their next step; a session under way ends first
    Pause(Steer),
    /// Let paused or cancelled projects, or one run, go on; a feature that is blocked is tried
    /// again
    Resume(Steer),
    /// End what is being done in projects, or in one run; what was done is kept
    Cancel(Steer),
    /// End projects or runs now: agents at work are killed, nothing tidies up
    #[command(visible_alias = "kill")]
    Terminate(Steer),
    /// Put a signal into the mailbox of a run
    Signal(Signal),
    /// Tell the agent of a feature something, at its next session
    Steer(Text),
    /// Let features be merged that wait for approval
    Approve(Answer),
    /// Send features that wait for approval back to their agents; --why is what they are told
    Deny(Answer),
    /// Begin a new run of a feature from a step of an earlier one (elsewhere: reset --event-id)
    Fork(Fork),
    /// Begin a feature again from nothing, with what its run was given
    Restart(Restart),
    /// Take a project back: its target branch, and what its log says of the features that landed
    /// since
    Rollback(Rollback),
    /// Keep the work tree of a feature as it is now, without disturbing its agent
    Checkpoint(Checkpoint),
    /// List what runs can be taken back to
    Checkpoints(Checkpoints),
    /// Settle an effect with an unknown outcome
    Reconcile(Reconcile),
    /// Verify that recorded runs replay deterministically with this program, without any effect
    Replay(Replay),
    /// Write runs to a file that another log takes in, or that `replay` reads anywhere
    Export(Export),
    /// Take in the runs of an export, a backup or single histories
    Import(Import),
    /// Write all of a log to a file, also while it is in use
    Backup(Backup),
    /// Make a log from a backup, in an empty data directory
    Restore(Restore),
    /// Look through a whole log for damage, and mend what can be
    Check(Check),
    /// Let go of the histories of runs that ended long ago; they stay listed
    Prune(Prune),
    /// Look for what keeps Longhaul from working on this machine
    Doctor(Doctor),
    /// Make a small project with a scripted agent, and run it
    Demo(Demo),
    /// Measure this machine: steps per second, time to open, memory, scheduling
    Bench(Bench),
    /// Write a completion script for a shell to standard output
    Completions(Completions),
}

#[derive(Debug, clap::Args)]
pub(crate) struct Init {
    /// The project
    #[arg(default_value = ".")]
    pub(crate) dir: PathBuf,
    /// The agent: a program and its arguments in one text, parted as a shell parts them: --agent
    /// "claude -p"
    #[arg(long, value_name = "COMMAND")]
    pub(crate) agent: Option<String>,
    /// Write the files, but do not commit them
    #[arg(long)]
    pub(crate) no_commit: bool,
    /// How what was done is written
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: Output,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Run {
    /// The projects
    #[arg(default_value = ".")]
    pub(crate) dirs: Vec<PathBuf>,
    /// Make this data directory the owner of the repositories, in the place of one that is gone or
    /// was restored here
    #[arg(long)]
    pub(crate) take_over: bool,
    #[command(flatten)]
    pub(crate) limits: AtOnce,
    /// How the summary is written
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: Output,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Show {
    /// The project
    #[arg(default_value = ".")]
    pub(crate) dir: PathBuf,
    /// How it is written
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: Output,
}

/// How data is written to standard output.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// For people
    #[default]
    Table,
    /// One JSON document with a `schema`
    Json,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Feature {
    /// The project
    #[arg(long, global = true, default_value = ".", value_name = "DIR")]
    pub(crate) dir: PathBuf,
    #[command(subcommand)]
    pub(crate) command: FeatureCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum FeatureCommand {
    /// Add a feature to the end of the list
    Add(FeatureAdd),
    /// Add the features of another tool's list: JSON, JSON lines, Markdown, a test report, issues
    Import(FeatureImport),
    /// Write the list as another tool reads it
    Export(FeatureExport),
    /// List the features
    List(FeatureList),
    /// Show one feature: what is asked for, and where it stands
    Show(FeatureName),
    /// Show which features can be worked on now, the next one first
    Next(FeatureList),
    /// Keep a feature from being worked on
    Block(FeatureChange),
    /// Try a blocked feature again
    Unblock(FeatureChange),
}

#[derive(Debug, clap::Args)]
pub(crate) struct FeatureList {
    /// The project; the same as --dir
    #[arg(value_name = "DIR")]
    pub(crate) place: Option<PathBuf>,
    /// How it is written
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: Output,
}

#[derive(Debug, clap::Args)]
pub(crate) struct FeatureAdd {
    /// Its id: letters, digits, . _ -
    pub(crate) id: String,
    /// Its name
    pub(crate) name: String,
    /// What is to be built
    #[arg(long, default_value = "")]
    pub(crate) description: String,
    /// What must hold when it is done; may be repeated
    #[arg(long, value_name = "TEXT")]
    pub(crate) criterion: Vec<String>,
    /// A command that must exit with 0 when it is done; may be repeated
    #[arg(long, value_name = "COMMAND")]
    pub(crate) check: Vec<String>,
    /// A feature that must pass first; may be repeated
    #[arg(long, value_name = "ID")]
    pub(crate) depends_on: Vec<String>,
    /// The higher, the sooner
    #[arg(long, default_value_t = 0, allow_negative_numbers = true)]
    pub(crate) priority: i64,
}

#[derive(Debug, clap::Args)]
pub(crate) struct FeatureName {
    /// The id of the feature
    pub(crate) id: String,
    /// How it is written
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: Output,
}

#[derive(Debug, clap::Args)]
pub(crate) struct FeatureChange {
    /// The id of the feature
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) asked: Asked,
}

#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("outcome").required(true).args(["landed", "not_landed"]))]
pub(crate) struct Reconcile {
    #[command(flatten)]
    pub(crate) one: OneRun,
    /// The effect happened
    #[arg(long)]
    pub(crate) landed: bool,
    /// The effect did not happen: do it
    #[arg(long)]
    pub(crate) not_landed: bool,
    /// What the effect gave, as JSON
    #[arg(long, value_name = "JSON", requires = "landed")]
    pub(crate) result: Option<String>,
    #[command(flatten)]
    pub(crate) asked: Asked,
    /// How it is written
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: Output,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Demo {
    /// A directory that does not exist yet, or one that a demo was begun in
    pub(crate) dir: PathBuf,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Bench {
    /// How it is written
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: Output,
    /// A directory to measure in; it is emptied afterwards [default: one in the data directory]
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// A tenth of the work, for a first impression
    #[arg(long)]
    pub(crate) quick: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Completions {
    /// The shell
    pub(crate) shell: clap_complete::Shell,
}
