//! The command line.

pub(crate) mod agent;
mod backlog;
mod batch;
mod examples;
mod help;
mod key_value;
pub(crate) mod look;
mod maintenance;
mod rewind;
mod selection;
pub(crate) mod session;
mod shared;
mod steer;
pub(crate) mod usage;

use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};
use longhaul_workflows::settings::Seconds;

pub(crate) use backlog::{FeatureExport, FeatureImport};
pub(crate) use batch::{Batch, BatchCommand, BatchOf, Shown};
pub(crate) use help::command as with_help;
pub(crate) use maintenance::{Backup, Check, Doctor, Export, Import, Prune, Replay, Restore};
pub(crate) use rewind::{Checkpoint, Checkpoints, Fork, Restart, Rollback, Runs};
pub(crate) use selection::{Filter, Selection};
pub(crate) use shared::{
    AtOnce, EventsOutput, ListOutput, OneRun, ProjectScope, RequestArguments, Target,
    TranscriptOutput, Wait, user,
};
pub(crate) use steer::{
    AnswerArguments, OrderArguments, OrderTargets, Signal, SteerArguments, Verdict,
};

const EXIT_CODES: &str = "Exit codes: 0 ok · 1 a finding (a feature is blocked) · \
                          2 usage, settings or list wrong · \
                          3 suspended (a person or a limit is waited for) · 4 operational (log, \
                          disk, git) · 5 partial";

/// A durable executor for long-running coding agents.
#[derive(Debug, Parser)]
#[command(name = "longhaul", version, after_help = EXIT_CODES)]
pub(crate) struct Arguments {
    /// The data directory with the log [default: $LONGHAUL_HOME, else longhaul in the XDG data
    /// directory]
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,

    /// Log more; twice for debugging
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,

    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Write longhaul.toml, a feature list and init.sh
    Init(Init),
    /// Run projects until every feature passes its checks or needs a person
    Run(Run),
    /// Run many projects under one id, in the order of their dependencies; repeat it to continue
    Batch(Batch),
    /// Show the status of a project, or a table of all projects, also while a process runs them
    Status(Show),
    /// Watch projects at work: features, log and transcript on a full screen
    Watch(Watch),
    /// Read and change the features of a project
    Feature(Feature),
    /// Run the agent on one feature; record checkpoints; list sessions
    Agent(agent::Agent),
    #[command(flatten)]
    Look(look::Look),
    /// Print the JSON Schema of a document that `-o json` prints; without a name, list the names
    Schema(look::Schema),
    /// Pause projects, or one run, before their next step; a running session ends first
    Pause(OrderTargets),
    /// Resume paused or cancelled projects, or one run; retry a blocked feature
    #[command(visible_aliases = ["retry", "unpause"])]
    Resume(OrderTargets),
    /// Cancel projects, or one run, and keep their work
    #[command(visible_alias = "stop")]
    Cancel(OrderTargets),
    /// Terminate projects or runs at once: agents are killed, without cleanup
    #[command(visible_alias = "kill")]
    Terminate(OrderTargets),
    /// Send a signal to a run
    Signal(Signal),
    /// Send the agent of a feature a note for its next session
    Steer(SteerArguments),
    /// Answer the question of an agent that waits for a person
    Answer(AnswerArguments),
    /// Approve the merge of features that wait for approval
    Approve(Verdict),
    /// Send features that wait for approval back to their agents, with the reason --why
    #[command(visible_alias = "reject")]
    Deny(Verdict),
    /// Start a new run of a feature from a step of an earlier one
    #[command(visible_alias = "reset")]
    Fork(Fork),
    /// Start a new run of a feature from the beginning, with the input of the earlier one
    #[command(visible_alias = "rerun")]
    Restart(Restart),
    /// Roll back a project: its target branch, and the features that landed since
    Rollback(Rollback),
    /// Record the current work tree of a feature, without disturbing its agent
    Checkpoint(Checkpoint),
    /// List the steps to which runs can return
    Checkpoints(Checkpoints),
    /// Settle an effect with an unknown outcome
    Reconcile(Reconcile),
    /// Verify that recorded runs replay deterministically with this program, without any effect
    Replay(Replay),
    /// Write runs to a file for `import` or `replay`
    Export(Export),
    /// Import the runs of an export, a backup or single histories
    Import(Import),
    /// Write a whole log to a file, also while it is in use
    Backup(Backup),
    /// Restore a backup into an empty data directory
    Restore(Restore),
    /// Check a whole log for damage; repair it with --repair
    Check(Check),
    /// Drop the histories of runs that ended long ago; the runs stay listed
    Prune(Prune),
    /// Find problems that keep Longhaul from working on this machine
    Doctor(Doctor),
    /// Create a small project with a scripted agent, and run it
    Demo(Demo),
    /// Measure this machine: steps per second, time to open, memory, scheduling
    Bench(Bench),
    /// Write a shell completion script to standard output
    Completions(Completions),
}

#[derive(Debug, clap::Args)]
pub(crate) struct Init {
    /// The project
    #[arg(default_value = ".")]
    pub(crate) dir: PathBuf,
    /// The agent: `claude`, `codex`, `opencode`, `api`, `acp COMMAND`, or a program and its
    /// arguments as one string with shell quoting: --agent "./agent.sh --fast"
    #[arg(long, value_name = "COMMAND")]
    pub(crate) agent: Option<String>,
    /// Write the files without a commit
    #[arg(long)]
    pub(crate) no_commit: bool,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: Output,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Run {
    /// The projects
    #[arg(default_value = ".")]
    pub(crate) dirs: Vec<PathBuf>,
    /// Claim the repositories for this data directory, if the owner is gone or was restored here
    #[arg(long)]
    pub(crate) take_over: bool,
    /// End as soon as nothing more can be done now, with exit code 3 and the next due time
    ///
    /// For a scheduler that starts Longhaul again: at that time, or when a person has acted. What
    /// is due within ten seconds is waited for.
    #[arg(long)]
    pub(crate) once: bool,
    /// End after this time: 90, 90s, 15m, 2h, 1d; the next `run` continues
    #[arg(long, value_name = "TIME")]
    pub(crate) max_time: Option<Seconds>,
    #[command(flatten)]
    pub(crate) limits: AtOnce,
    /// Output format of the summary
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: Output,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Show {
    /// The project [default: the one here; outside of a project, a table of all]
    pub(crate) dir: Option<PathBuf>,
    /// A table of all projects
    #[arg(short, long, conflicts_with = "dir")]
    pub(crate) all: bool,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: Output,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Watch {
    /// The project [default: the project here, else the newest one of the log]
    pub(crate) dir: Option<PathBuf>,
}

/// Output formats of data on standard output.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// Text for people
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
    /// Import features from another tool: JSON, JSON lines, Markdown, a test report, issues
    Import(FeatureImport),
    /// Write the list in the format of another tool
    Export(FeatureExport),
    /// List the features
    List(FeatureAll),
    /// Show one feature: its list entry and its status
    Show(FeatureName),
    /// Show the features that are ready, the next one first
    Next(FeatureList),
    /// Block a feature
    Block(FeatureChange),
    /// Unblock a feature and retry it
    Unblock(FeatureChange),
}

#[derive(Debug, clap::Args)]
pub(crate) struct FeatureList {
    /// The project; the same as --dir
    #[arg(value_name = "DIR")]
    pub(crate) place: Option<PathBuf>,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: Output,
}

#[derive(Debug, clap::Args)]
pub(crate) struct FeatureAll {
    #[command(flatten)]
    pub(crate) list: FeatureList,
    /// Show all features, not only a screenful
    #[arg(short, long)]
    pub(crate) all: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct FeatureAdd {
    /// Its id: letters, digits, . _ -
    pub(crate) id: String,
    /// Its name
    pub(crate) name: String,
    /// Description of the work
    #[arg(long, default_value = "")]
    pub(crate) description: String,
    /// An acceptance criterion; may be repeated
    #[arg(long, value_name = "TEXT")]
    pub(crate) criterion: Vec<String>,
    /// A command that must exit with 0 for the feature to pass; may be repeated
    #[arg(long, value_name = "COMMAND")]
    pub(crate) check: Vec<String>,
    /// A feature that must pass first; may be repeated
    #[arg(long, value_name = "ID")]
    pub(crate) depends_on: Vec<String>,
    /// Higher values start first
    #[arg(long, default_value_t = 0, allow_negative_numbers = true)]
    pub(crate) priority: i64,
}

#[derive(Debug, clap::Args)]
pub(crate) struct FeatureName {
    /// The id of the feature
    pub(crate) id: String,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: Output,
}

#[derive(Debug, clap::Args)]
pub(crate) struct FeatureChange {
    /// The id of the feature
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) request: RequestArguments,
}

#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("outcome").required(true).args(["happened", "not_happened"]))]
pub(crate) struct Reconcile {
    #[command(flatten)]
    pub(crate) one: OneRun,
    /// The effect happened
    #[arg(long)]
    pub(crate) happened: bool,
    /// The effect did not happen; perform it
    #[arg(long)]
    pub(crate) not_happened: bool,
    /// The output of the effect, as JSON
    #[arg(long, value_name = "JSON", requires = "happened")]
    pub(crate) result: Option<String>,
    #[command(flatten)]
    pub(crate) request: RequestArguments,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: Output,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Demo {
    /// A directory that does not exist yet, or that contains an unfinished demo
    pub(crate) dir: PathBuf,
    /// The agent [default: command]
    #[arg(long, value_enum)]
    pub(crate) agent: Option<DemoAgent>,
}

/// The agent of a demo.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DemoAgent {
    /// A scripted command
    Command,
    /// Longhaul's own agent, on a scripted model with a small window: its sessions hand over
    Api,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Bench {
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: Output,
    /// A directory for the measurements, emptied afterwards [default: one in the data directory]
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// Run a tenth of the work for a quick estimate
    #[arg(long)]
    pub(crate) quick: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Completions {
    /// The shell
    pub(crate) shell: clap_complete::Shell,
}
