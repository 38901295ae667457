//! Permission for a session. The project grants it: it limits the number of agents, holds back
//! sessions that cannot succeed, and counts failed ones.

use longhaul_engine::{Context, ContextExt, Received, RunId, Stop};
use serde::{Deserialize, Serialize};

use crate::contracts::{SessionEnding, SessionReason, SessionReport};
use crate::prompt;
use crate::resources::{Resource, Resources};
use crate::settings::AgentSettings;

use super::Work;

/// The signal `session_request`: a feature asks its project for a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionRequest {
    /// The number of the session in the run of the feature, from one.
    pub number: u32,
    /// Why it needs a session.
    pub reason: SessionReason,
    /// The identity of its agent.
    pub agent: Vec<String>,
    /// The files that its work changes or conflicts in, relative to the root.
    pub files: Vec<String>,
    /// Whether the session resolves a merge conflict: the tip should not move meanwhile.
    pub resolves: bool,
    /// The failed baseline check of the commit that it starts from.
    pub broken: Option<BrokenBase>,
    /// What its sessions may use, by the limits of the feature.
    pub left: Resources,
}

/// A commit that fails the project's own baseline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BrokenBase {
    /// The commit.
    pub commit: String,
    /// The failed check or set-up script, with its article.
    pub check: String,
    /// How it ended: `exit code 1`.
    pub ending: String,
}

/// The signal `session_permit`: the answer to a [`SessionRequest`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "permit", rename_all = "snake_case")]
pub enum SessionPermit {
    /// The session may begin.
    Granted {
        /// The id of its run. A fork copies this answer, so it never names another session.
        session: RunId,
        /// How many of its failed sessions belong to an outage of the agent; they do not count.
        forgiven: u32,
        /// The agent to use from now on: the current one does not work, and the settings name
        /// another.
        agent: Option<Box<AgentSettings>>,
        /// What the session may use: it is reserved until the session has ended.
        available: Resources,
    },
    /// The target has moved since the baseline failed: start from it and run the baseline again.
    Rebase,
    /// The session is refused.
    Refused {
        /// The reason.
        reason: String,
        /// The resource of the project that is spent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        over_limit: Option<Resource>,
    },
}

/// The signal `session_ended`: the outcome of a granted session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionEnded {
    /// The identity of the agent.
    pub agent: Vec<String>,
    /// The outcome.
    pub result: SessionResult,
    /// What the session used, with those that it handed its work to.
    pub used: Resources,
}

/// The outcome of a granted session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "result", rename_all = "snake_case")]
pub enum SessionResult {
    /// The agent worked: it ended normally, or it changed files.
    Worked {
        /// Whether the agent called the work done.
        done: bool,
    },
    /// It was not used.
    Unused,
    /// It failed without a change.
    Failed {
        /// `exit code 1`, or why the agent could not be started.
        ending: String,
        /// The last line of the output.
        last_words: String,
        /// Whether the agent could be started.
        started: bool,
    },
}

impl SessionRequest {
    /// The name of the signal.
    pub const SIGNAL: &'static str = "session_request";
}

impl SessionPermit {
    /// The name of the signal.
    pub const SIGNAL: &'static str = "session_permit";
}

impl SessionEnded {
    /// The name of the signal.
    pub const SIGNAL: &'static str = "session_ended";
}

/// Requests a session and waits for the answer.
pub(super) async fn ask(context: &mut dyn Context, work: &mut Work) -> Result<SessionPermit, Stop> {
    let project = work.project_run()?;
    context.signal(project.clone(), SessionRequest::SIGNAL, &work.request()).await?;
    let filter = Work::notes_and(SessionPermit::SIGNAL);
    loop {
        match context.receive(&filter, None).await? {
            Some(Received::Signal { name, payload, from })
                if name == SessionPermit::SIGNAL && from.as_ref() == Some(&project) =>
            {
                return Ok(payload.read()?);
            }
            Some(received) => work.take_note(received),
            None => {}
        }
    }
}

/// Reports the outcome of a granted session.
pub(super) async fn report(
    context: &mut dyn Context,
    work: &Work,
    result: SessionResult,
) -> Result<(), Stop> {
    let agent = work.input.settings.agent.identity();
    let ended = SessionEnded { agent, result, used: work.used };
    context.signal(work.project_run()?, SessionEnded::SIGNAL, &ended).await
}

impl SessionResult {
    /// The outcome of a session that ran.
    pub(super) fn of(session: &SessionReport, has_changed: bool) -> Self {
        let last_words = prompt::last_words(&session.output_tail);
        match &session.ending {
            SessionEnding::Failed { reason, .. } if !has_changed => {
                let started = session.has_working_agent();
                Self::Failed { ending: reason.clone(), last_words, started }
            }
            SessionEnding::NotStarted { reason } => {
                Self::Failed { ending: reason.clone(), last_words: String::new(), started: false }
            }
            ending => Self::Worked { done: *ending == SessionEnding::ClaimsDone },
        }
    }
}
