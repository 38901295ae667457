//! One session of an agent: one context window, one process.

use std::time::Duration;

use longhaul_engine::{Delays, Policy};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::backlog::{Check, Feature};
use crate::settings::AgentSettings;

use super::{Feedback, ProjectRef};

activity! {
    /// Runs the configured command as an agent in a work tree, until it ends. What the agent does wrong is a report, not a
    /// failure of the activity; so is a program that cannot be started.
    ///
    /// Guarded: a session is paid work. The handler leaves its report in a file before it returns, and the probe looks for it.
    /// Where a session was cut, what it committed stays; what it did not commit is kept under
    /// `refs/longhaul/rescue/<run>/<call>`, which the prompt of the next attempt names.
    RunSession = "run_session": SessionInput => SessionReport, Policy {
        // The session has a time limit of its own; this one is only the last resort.
        start_to_close: Duration::from_hours(24 * 7),
        retry: Delays::List(vec![Duration::from_secs(5), Duration::from_secs(30)]),
        pool: Some("agents".into()),
        ..Policy::guarded()
    }
}

/// Why a session is started: what the prompt is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SessionReason {
    /// The first one of a run.
    Start,
    /// The one before had filled its context.
    Continue,
    /// The one before failed.
    Retry,
    /// The project does not pass its own baseline check: that comes first.
    Repair,
    /// The gates failed.
    GatesFailed,
    /// The work does not merge with what landed since.
    Conflict,
}

impl SessionReason {
    /// As agents get it in `LONGHAUL_REASON`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Continue => "continue",
            Self::Retry => "retry",
            Self::Repair => "repair",
            Self::GatesFailed => "gates_failed",
            Self::Conflict => "conflict",
        }
    }
}

/// Input of [`RunSession`]: facts only. The words of the prompt are the handler's, so that better
/// ones do not make recorded runs diverge.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SessionInput {
    /// The project.
    pub project: ProjectRef,
    /// The branch that finished work goes to.
    pub target: String,
    /// The feature to work on.
    pub feature: Feature,
    /// The work tree.
    pub worktree: String,
    /// Which session of this run, from one.
    pub number: u32,
    /// Why.
    pub reason: SessionReason,
    /// The commands that will decide whether it is done.
    pub gates: Vec<Check>,
    /// What the session before left.
    pub feedback: Feedback,
    /// The program, and its limits.
    pub agent: AgentSettings,
    /// The directory of held-out checks, which it does not see.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_out: Option<String>,
    /// Whether it is run even if work of this run is on the target: the gates failed there.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub redo: bool,
}

/// How a session ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ending", rename_all = "snake_case")]
pub enum SessionEnding {
    /// Exit code 0: the agent says that the feature is done. A claim.
    ClaimsDone,
    /// Exit code 75: the context is full, the work is to be continued by a fresh session.
    ContextFull,
    /// Anything else.
    Failed {
        /// `exit code 1`, `silent for 600 s`, `timed out after 3600 s`, `killed by signal 9`.
        reason: String,
        /// Exit code 126 or 127, by which a shell says that a command could not be run.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        lacks_command: bool,
    },
    /// No agent was started: work of this run is on the target, and its log has lost that. The
    /// gates decide.
    Landed {
        /// The commit that landed.
        commit: String,
        /// The files that it changed, relative to the root.
        files: Vec<String>,
    },
    /// The agent could not be started; no work was done.
    NotStarted {
        /// What is wrong, and what to do.
        reason: String,
    },
}

/// Output of [`RunSession`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionReport {
    /// How it ended.
    pub ending: SessionEnding,
    /// What the agent left in its notes file, at most 64 KiB.
    pub notes: String,
    /// Why its notes file was not read, if something else stands there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unread_notes: Option<String>,
    /// How long it took.
    pub duration_ms: u64,
    /// blake3 of its whole output, in hex.
    pub output_digest: String,
    /// The end of its output, at most 8 KiB.
    pub output_tail: String,
    /// The file that holds the whole output.
    pub log: String,
    /// The sandbox that it ran in: `bubblewrap`, `landlock` or `none`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub sandbox: String,
}
