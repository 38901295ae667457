//! The record of one session: how far it came, and what it can be taken back to.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use longhaul_engine::{Position, RunId};
use longhaul_workflows::backlog::FeatureId;
use serde::Serialize;

use super::text::{clean, end_of, precise};

/// How much of an agent's notes a record keeps: the end, in bytes.
const SUMMARY: usize = 8 * 1024;

/// What a session has to go through until its work is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Step {
    Session,
    Checkpoint,
    Gates,
    Merge,
    MergedGates,
    Landing,
}

impl Step {
    const ALL: [Self; 6] =
        [Self::Session, Self::Checkpoint, Self::Gates, Self::Merge, Self::MergedGates, Self::Landing];

    pub(super) fn name(self) -> &'static str {
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

/// How a session is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum SessionStatus {
    /// The agent works.
    Active,
    /// It ended by itself: done, or with a full context.
    Completed,
    /// It was cut off, and may be tried again.
    Interrupted,
    /// It failed.
    Error,
}

/// A point that the work can be taken back to.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Checkpoint {
    pub(super) id: String,
    pub(super) created_at: String,
    pub(super) step: String,
    pub(super) trigger: &'static str,
    pub(super) commit: String,
    pub(super) position: Position,
}

/// One session, as its run has told so far.
#[derive(Debug, Clone)]
pub(super) struct Session {
    pub(super) id: String,
    /// Its number in its run, from one.
    pub(super) number: u32,
    /// Which time its run had been started, from one.
    pub(super) life: u32,
    pub(super) started_at: DateTime<Utc>,
    /// Where its beginning is in the history of its run.
    pub(super) position: Position,
    pub(super) last_activity: DateTime<Utc>,
    pub(super) status: SessionStatus,
    pub(super) checkpoints: Vec<Checkpoint>,
    done: BTreeSet<Step>,
    summary: String,
    /// Whether nothing more belongs to it.
    closed: bool,
    /// The number of the file that holds exactly this; `None` if none does.
    pub(super) written: Option<usize>,
}

impl Session {
    pub(super) fn begin(id: String, number: u32, life: u32, at: DateTime<Utc>, position: Position) -> Self {
        Self {
            id,
            number,
            life,
            started_at: at,
            position,
            last_activity: at,
            status: SessionStatus::Active,
            checkpoints: Vec::new(),
            done: BTreeSet::new(),
            summary: String::new(),
            closed: false,
            written: None,
        }
    }

    /// Something happened that belongs to it.
    pub(super) fn touch(&mut self, at: DateTime<Utc>) {
        if !self.closed {
            self.last_activity = at;
            self.written = None;
        }
    }

    pub(super) fn complete(&mut self, step: Step) {
        self.done.insert(step);
    }

    pub(super) fn take_notes(&mut self, notes: &str) {
        let notes = [&self.summary, clean(notes).trim()].join("\n");
        end_of(notes.trim(), SUMMARY).clone_into(&mut self.summary);
    }

    /// Another session goes on, or the run is over.
    pub(super) fn close(&mut self) {
        if self.status == SessionStatus::Active {
            self.status = SessionStatus::Interrupted;
        }
        self.closed = true;
        self.written = None;
    }

    /// The record as it is written; `doing` is what its run does now.
    pub(super) fn record<'a>(&'a self, feature: &'a FeatureId, run: &'a RunId, doing: &'a str) -> Record<'a> {
        let (completed, pending): (Vec<Step>, Vec<Step>) =
            Step::ALL.into_iter().partition(|step| self.done.contains(step));
        Record {
            id: &self.id,
            feature,
            run,
            started_at: precise(self.started_at),
            last_activity: precise(self.last_activity),
            current_step: Some(doing).filter(|doing| !self.closed && !doing.is_empty()),
            completed_steps: completed.into_iter().map(Step::name).collect(),
            pending_steps: pending.into_iter().map(Step::name).collect(),
            context_summary: &self.summary,
            checkpoints: &self.checkpoints,
            status: self.status,
        }
    }
}

/// A session as its file has it.
#[derive(Debug, Serialize)]
pub(super) struct Record<'a> {
    id: &'a str,
    feature: &'a FeatureId,
    run: &'a RunId,
    started_at: String,
    last_activity: String,
    current_step: Option<&'a str>,
    completed_steps: Vec<&'static str>,
    pending_steps: Vec<&'static str>,
    context_summary: &'a str,
    checkpoints: &'a [Checkpoint],
    status: SessionStatus,
}
