//! The arguments of `session`.

use clap::Subcommand;

use super::{ListOutput, Output, ProjectScope, TranscriptOutput};

#[derive(Debug, clap::Args)]
pub(crate) struct Session {
    #[command(subcommand)]
    pub(crate) command: SessionCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SessionCommand {
    /// List the sessions of all projects, or of one, in the order of their start
    List(SessionList),
    /// Show one session: its state, steps, summary, checkpoints, turns, tokens
    Show(OneSession),
    /// Print the conversation of a session: prompts, texts, tool calls, tokens
    Transcript(SessionTranscript),
    /// Print the package that a session has left for the next one, or received
    Handoff(OneHandoff),
}

#[derive(Debug, clap::Args)]
pub(crate) struct SessionList {
    /// A project (its directory or its id), feature, run or session [default: all projects]
    #[arg(value_name = "DIR|FEATURE|ID")]
    pub(crate) target: Option<String>,
    #[command(flatten)]
    pub(crate) scope: ProjectScope,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: ListOutput,
}

/// One session.
#[derive(Debug, clap::Args)]
pub(crate) struct SessionName {
    /// The session: its id or a unique part of it; or a feature of the project: its last session
    #[arg(value_name = "ID|FEATURE")]
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) scope: ProjectScope,
}

#[derive(Debug, clap::Args)]
pub(crate) struct OneSession {
    #[command(flatten)]
    pub(crate) one: SessionName,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: Output,
}

#[derive(Debug, clap::Args)]
pub(crate) struct SessionTranscript {
    #[command(flatten)]
    pub(crate) one: SessionName,
    /// Print long results of tools and long arguments as a whole
    #[arg(long)]
    pub(crate) full: bool,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: TranscriptOutput,
}

#[derive(Debug, clap::Args)]
pub(crate) struct OneHandoff {
    #[command(flatten)]
    pub(crate) one: SessionName,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: Output,
}
