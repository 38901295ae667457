//! One session of an agent, folded from the history of its run.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use longhaul_engine::Position;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::contracts::{SessionEnding, SessionReason, SessionReport};

/// The steps from a session to the target branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// The agent worked.
    Session,
    /// Its work was sealed.
    Checkpoint,
    /// The gates passed.
    Gates,
    /// The work merged with the target.
    Merge,
    /// The gates passed on the merged result.
    MergedGates,
    /// The target branch moved.
    Landing,
}

impl Step {
    /// All of them, in order.
    pub const ALL: [Self; 6] = [
        Self::Session,
        Self::Checkpoint,
        Self::Gates,
        Self::Merge,
        Self::MergedGates,
        Self::Landing,
    ];

    /// Its name in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::Checkpoint => "checkpoint",
            Self::Gates => "gates",
            Self::Merge => "merge",
            Self::MergedGates => "gates on the merged result",
            Self::Landing => "landing",
        }
    }
}

/// How far a session is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SessionState {
    /// The agent works.
    Working,
    /// It was cut off.
    Interrupted,
    /// The agent said that the feature is done.
    ClaimsDone,
    /// Its context was full.
    ContextFull,
    /// No agent was started: work of the run had landed already.
    Landed,
    /// It failed, or the agent could not be started.
    Failed,
}

/// One session of an agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Session {
    /// Its number within the run, from 1.
    pub number: u32,
    /// The call: the name of its directory in `sessions/<run>/`.
    pub call: String,
    /// Why it was begun.
    pub reason: SessionReason,
    /// How many attempts it took; more than one if it was cut off.
    pub attempts: u32,
    /// How far it is.
    pub state: SessionState,
    /// Why it failed, or was cut off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// When it began.
    pub started_at: DateTime<Utc>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<DateTime<Utc>>,
    /// How long the agent worked, in seconds; absent while it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    /// The file with the whole output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<String>,
    /// What the files for people tell besides.
    #[serde(skip)]
    pub record: SessionRecord,
}

/// What the files for people tell of a session besides.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SessionRecord {
    /// The segment of the history that it belongs to, from 1.
    pub segment: usize,
    /// The position of its first event.
    pub position: Position,
    /// Whether its events are copies from the run that this one was forked from.
    pub is_copied: bool,
    /// When something last happened that belongs to it.
    pub last_activity: DateTime<Utc>,
    /// The steps that its work has passed.
    pub steps: BTreeSet<Step>,
    /// The notes of its agent, as they were left: those of its report, then those of the seal.
    pub notes: Vec<String>,
    /// Where its work was sealed: position, time and commit.
    pub checkpoints: Vec<(Position, DateTime<Utc>, String)>,
    /// Whether nothing more belongs to it.
    pub is_closed: bool,
}

impl Session {
    /// Takes the report of its agent in.
    pub(super) fn end(&mut self, at: DateTime<Utc>, report: &SessionReport) {
        self.ended_at = Some(at);
        self.seconds = Some(std::time::Duration::from_millis(report.duration_ms).as_secs_f64());
        self.log = Some(report.log.clone());
        self.record.notes.push(report.notes.clone());
        (self.state, self.failure) = match &report.ending {
            SessionEnding::ClaimsDone => (SessionState::ClaimsDone, None),
            SessionEnding::ContextFull => (SessionState::ContextFull, None),
            SessionEnding::Landed { .. } => (SessionState::Landed, None),
            SessionEnding::Failed { reason, .. } | SessionEnding::NotStarted { reason } => {
                (SessionState::Failed, Some(reason.clone()))
            }
        };
        if self.state != SessionState::Failed {
            self.record.steps.insert(Step::Session);
        }
    }

    /// An attempt of it failed.
    pub(super) fn fail(&mut self, at: DateTime<Utc>, message: &str, is_tried_again: bool) {
        self.failure = Some(message.to_owned());
        self.state = if is_tried_again { SessionState::Interrupted } else { SessionState::Failed };
        self.ended_at = (!is_tried_again).then_some(at);
    }

    /// It was cut off while its agent worked.
    pub(super) fn interrupt(&mut self) {
        if self.state == SessionState::Working {
            self.state = SessionState::Interrupted;
        }
    }

    /// Another session goes on, or the run is over.
    pub(super) fn close(&mut self, at: DateTime<Utc>) {
        self.interrupt();
        self.ended_at.get_or_insert(at);
        self.record.is_closed = true;
    }

    /// Something happened that belongs to it.
    pub(super) fn touch(&mut self, at: DateTime<Utc>) {
        if !self.record.is_closed {
            self.record.last_activity = at;
        }
    }
}
