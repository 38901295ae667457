//! The projection of an agent session, folded from the history of its run.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use longhaul_engine::{Activity, Event, EventKind, Position, RunId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::contracts::{AgentFacts, RunSession, SessionEnding, SessionReason, SessionReport};
use crate::settings::Driver;

/// The steps of work from a session to the target branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// The agent session.
    Session,
    /// The seal of its work.
    Checkpoint,
    /// The gates.
    Gates,
    /// The merge with the target.
    Merge,
    /// The gates on the merged result.
    MergedGates,
    /// The move of the target branch.
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

/// The state of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SessionState {
    /// The agent works.
    Working,
    /// It was interrupted.
    Interrupted,
    /// The agent claims that the feature is done.
    ClaimsDone,
    /// Its context was full.
    ContextFull,
    /// No agent was started: work of the run had already landed.
    Landed,
    /// It failed, or the agent could not be started.
    Failed,
}

impl SessionState {
    /// This state without a failure.
    pub fn without_failure(self) -> SessionCondition {
        SessionCondition { state: self, failure: None }
    }
}

/// The state of a session, and why it failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionCondition {
    /// The state.
    pub state: SessionState,
    /// The reason of a failure or an interruption, if it is known.
    pub failure: Option<String>,
}

impl SessionCondition {
    /// The condition after an ending.
    pub fn of(ending: &SessionEnding) -> Self {
        match ending {
            SessionEnding::ClaimsDone => SessionState::ClaimsDone.without_failure(),
            SessionEnding::ContextFull => SessionState::ContextFull.without_failure(),
            SessionEnding::Landed { .. } => SessionState::Landed.without_failure(),
            SessionEnding::Failed { reason, .. } | SessionEnding::NotStarted { reason } => {
                Self::failed(reason)
            }
        }
    }

    /// A failure for a reason.
    pub fn failed(reason: &str) -> Self {
        Self { state: SessionState::Failed, failure: Some(reason.to_owned()) }
    }
}

/// One session of an agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Session {
    /// Its number within the run, from 1.
    pub number: u32,
    /// Its run.
    pub run: String,
    /// The driver that runs it.
    pub driver: Driver,
    /// The reason for it.
    pub reason: SessionReason,
    /// The number of its attempts; more than one after an interruption.
    pub attempts: u32,
    /// Its state.
    pub state: SessionState,
    /// The reason of its failure or interruption.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// Its start.
    pub started_at: DateTime<Utc>,
    /// Its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<DateTime<Utc>>,
    /// The working time of the agent, in seconds; absent while it works.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    /// The file with the whole output. Recorded relative to the data directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<String>,
    /// Additional fields for the files for people.
    #[serde(skip)]
    pub record: SessionRecord,
}

/// Additional fields of a session for the files for people.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SessionRecord {
    /// The number of its history segment, from 1.
    pub segment: usize,
    /// The position of its first event.
    pub position: Position,
    /// Whether its events are copies from the run that this one was forked from.
    pub is_copied: bool,
    /// The time of its last event.
    pub last_activity: DateTime<Utc>,
    /// The completed steps of its work.
    pub steps: BTreeSet<Step>,
    /// The notes of its agent, unchanged: those of its report, then those of the seal.
    pub notes: Vec<String>,
    /// The seal of its work: position, time and commit.
    pub checkpoints: Vec<(Position, DateTime<Utc>, String)>,
    /// Whether no further event belongs to it.
    pub is_closed: bool,
    /// The facts of its report about the agent.
    pub agent: Option<AgentFacts>,
}

impl Session {
    /// The id of its run.
    pub fn run(&self) -> Option<RunId> {
        RunId::new(self.run.as_str()).ok()
    }

    /// Applies an event of its own run: an agent that is one activity can need several attempts.
    pub fn apply(&mut self, event: &Event) {
        let is_open = self.ended_at.is_none();
        match &event.kind {
            EventKind::ActivityStarted { name, attempt, .. } if name == RunSession::NAME => {
                self.attempts = self.attempts.max(*attempt);
                if is_open {
                    self.state = SessionState::Working;
                    self.failure = None;
                }
            }
            EventKind::ActivityCompleted { name, attempt, .. } if name == RunSession::NAME => {
                self.attempts = self.attempts.max(*attempt);
            }
            EventKind::ActivityFailed { name, failure, retry_at: Some(_), .. }
                if name == RunSession::NAME && is_open =>
            {
                self.failure = Some(failure.message.clone());
                self.state = SessionState::Interrupted;
            }
            EventKind::RunParked { .. } if is_open => self.interrupt(),
            _ => {}
        }
        self.record.last_activity = self.record.last_activity.max(event.at);
    }

    /// Applies the report of its agent.
    pub(super) fn end(&mut self, at: DateTime<Utc>, report: &SessionReport) {
        self.ended_at = Some(at);
        self.seconds = Some(std::time::Duration::from_millis(report.duration_ms).as_secs_f64());
        self.log = Some(report.log.clone()).filter(|log| !log.is_empty());
        self.record.notes.push(report.notes.clone());
        self.record.agent.clone_from(&report.agent);
        let SessionCondition { state, failure } = SessionCondition::of(&report.ending);
        self.state = state;
        self.failure = failure;
        if self.state != SessionState::Failed {
            self.record.steps.insert(Step::Session);
        }
    }

    /// It failed.
    pub(super) fn fail(&mut self, at: DateTime<Utc>, message: &str) {
        self.failure = Some(message.to_owned());
        self.state = SessionState::Failed;
        self.ended_at = Some(at);
    }

    /// It was interrupted while its agent worked.
    pub(super) fn interrupt(&mut self) {
        if self.state == SessionState::Working {
            self.state = SessionState::Interrupted;
        }
    }

    /// Another session begins, or the run is over.
    pub(super) fn close(&mut self, at: DateTime<Utc>) {
        self.interrupt();
        self.ended_at.get_or_insert(at);
        self.record.is_closed = true;
    }

    /// Records an event that belongs to it.
    pub(super) fn touch(&mut self, at: DateTime<Utc>) {
        if !self.record.is_closed {
            self.record.last_activity = at;
        }
    }
}
