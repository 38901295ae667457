//! One session of an agent: one context window, one process.

use std::time::Duration;

use longhaul_engine::{Delays, Policy};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::backlog::{Check, Feature};
use crate::resources::Resources;
use crate::settings::AgentSettings;

use super::{AgentFacts, CallModel, Feedback, OutsideChange, ProjectRef, Tampering};

activity! {
    /// Runs the configured command as an agent in a work tree until it ends. A failed session is a
    /// report, not a failure of the activity; so is a program that cannot be started.
    ///
    /// Guarded: a session is paid work. The handler stores its report in a file before it returns,
    /// and the probe looks for that file. Commits of an interrupted session stay; its uncommitted
    /// work is kept under `refs/longhaul/rescue/<run>/<call>`, which the prompt of the next attempt
    /// names.
    RunSession = "run_session": SessionInput => SessionReport, |input| Policy {
        // The session has its own timeout; this one is the last resort.
        start_to_close: Duration::from_hours(24 * 7),
        retry: Delays::List(vec![Duration::from_secs(5), Duration::from_secs(30)]),
        pool: Some("agents".into()),
        within: input.agent.provider.as_deref().map(CallModel::pool),
        ..Policy::guarded()
    }
}

activity! {
    /// Reads the use of a cancelled session of a known agent until its last answer. The cost is
    /// that of the prices now, if the agent does not state it.
    ReadUse = "read_use": SessionInput => Resources, super::git_policy()
}

/// Why a session is started: the subject of its prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SessionReason {
    /// The first one of a run.
    Start,
    /// The previous one had filled its context.
    Continue,
    /// The previous one failed.
    Retry,
    /// The project fails its own baseline check, which must be repaired first.
    Repair,
    /// The gates failed.
    GatesFailed,
    /// The work conflicts with the target.
    Conflict,
}

impl SessionReason {
    /// The value of `LONGHAUL_REASON`.
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

/// Input of [`RunSession`]: facts only. The handler writes the prompt, so that a better text does
/// not make recorded runs diverge.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SessionInput {
    /// The project.
    pub project: ProjectRef,
    /// The target branch.
    pub target: String,
    /// The feature to work on.
    pub feature: Feature,
    /// The number of the session in this run, from one.
    pub number: u32,
    /// The reason for the session.
    pub reason: SessionReason,
    /// The checks that will accept the work.
    pub gates: Vec<Check>,
    /// The feedback of the previous session.
    pub feedback: Feedback,
    /// The agent program, and its limits.
    pub agent: AgentSettings,
    /// The resources that the session may use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub available: Option<Resources>,
    /// The directory of held-out checks, hidden from the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_out: Option<String>,
    /// Whether it runs even if work of this run is on the target, because the gates failed there.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub redo: bool,
}

/// How a session ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ending", rename_all = "snake_case")]
pub enum SessionEnding {
    /// Exit code 0: the agent claims that the feature is done.
    ClaimsDone,
    /// Exit code 75: the context is full; a fresh session continues the work.
    ContextFull,
    /// Anything else.
    Failed {
        /// `exit code 1`, `silent for 600 s`, `timed out after 3600 s`, `killed by signal 9`.
        reason: String,
        /// Exit code 126 or 127: the shell could not run the command.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        lacks_command: bool,
    },
    /// No agent was started: work of this run is on the target, but its log has lost that record.
    /// The gates decide.
    Landed {
        /// The commit that landed.
        commit: String,
        /// The files that it changed, relative to the root.
        files: Vec<String>,
    },
    /// The agent could not be started; no work was done.
    NotStarted {
        /// The error and the remedy.
        reason: String,
    },
}

impl SessionReport {
    /// The report of a session without an agent process.
    pub fn without_agent(ending: SessionEnding) -> Self {
        Self {
            ending,
            notes: String::new(),
            unread_notes: None,
            duration_ms: 0,
            output_digest: String::new(),
            output_tail: String::new(),
            log: String::new(),
            sandbox: String::new(),
            tampered: Vec::new(),
            outside: Vec::new(),
            agent: None,
        }
    }
}

impl SessionEnding {
    /// The ending as a clause, for the subject of a commit.
    pub fn text(&self) -> &str {
        match self {
            Self::ClaimsDone | Self::Landed { .. } => "done",
            Self::ContextFull => "to be continued",
            Self::Failed { reason, .. } | Self::NotStarted { reason } => reason,
        }
    }
}

/// Output of [`RunSession`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionReport {
    /// How it ended.
    pub ending: SessionEnding,
    /// The agent's notes file at the end, at most 64 KiB.
    pub notes: String,
    /// Why its notes file was not read, if it is not a regular file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unread_notes: Option<String>,
    /// The duration.
    pub duration_ms: u64,
    /// blake3 of its whole output, in hex.
    pub output_digest: String,
    /// The end of its output, at most 8 KiB.
    pub output_tail: String,
    /// The file that holds the whole output, relative to the data directory.
    pub log: String,
    /// The sandbox that it ran in: `bubblewrap`, `landlock` or `none`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub sandbox: String,
    /// The files that checkpoints within the session put back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tampered: Vec<Tampering>,
    /// The branches that other programs moved before those checkpoints.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outside: Vec<OutsideChange>,
    /// Facts about the agent, if its driver reads its events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentFacts>,
}

impl SessionReport {
    /// The resources that the session used.
    pub fn used(&self) -> Resources {
        let facts = self.agent.as_ref();
        let active = facts.and_then(|facts| facts.active_ms);
        Resources {
            turns: facts.and_then(|facts| facts.turns).unwrap_or_default(),
            tokens: facts.map_or(0, |facts| facts.usage.fresh()),
            cost_micros: facts.and_then(|facts| facts.cost_micros).unwrap_or_default(),
            time_ms: active.unwrap_or(self.duration_ms),
        }
    }

    /// Whether the agent could work at all: it was found, and it is logged in.
    pub(crate) fn has_working_agent(&self) -> bool {
        match &self.ending {
            SessionEnding::NotStarted { .. } => false,
            SessionEnding::Failed { lacks_command, .. } => {
                !lacks_command && !self.agent.as_ref().is_some_and(|it| it.outcome.needs_person())
            }
            _ => true,
        }
    }
}
