//! What a history amounts to: the status of a run and what it waits for, folded from its events.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};

use crate::event::{Cause, Event, EventKind, RequestedBy, UnknownEffect};
use crate::failure::FailureKind;
use crate::id::{Position, RunId};

/// Where a run stands.
#[derive(Debug, Clone, PartialEq)]
pub enum Status {
    /// Something is to be done, or is being done.
    Running,
    /// For a message, a timer, or the time of the next attempt.
    Waiting {
        /// When it goes on by itself.
        until: Option<DateTime<Utc>>,
        /// The failure of the machine that it waits out: a full disk, no descriptors.
        machine: Option<String>,
    },
    /// Paused by request.
    Paused(RequestedBy),
    /// The outcome of an effect is unknown.
    Parked(UnknownEffect),
    /// Over, with a result.
    Completed,
    /// Over, without one.
    Failed(String),
    /// Over, as asked.
    Cancelled,
}

impl Status {
    /// Whether the run is over.
    pub fn is_terminal(&self) -> bool {
        matches!(self, Self::Completed | Self::Failed(_) | Self::Cancelled)
    }

    /// The name of the status, as shown to people and scripts.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Waiting { .. } => "waiting",
            Self::Paused(_) => "paused",
            Self::Parked(_) => "parked",
            Self::Completed => "completed",
            Self::Failed(_) => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

/// The fold of a history that stores keep beside it, so that a run can be found without reading its
/// events.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// The workflow that decides.
    pub workflow: String,
    /// The run that started it.
    pub parent: Option<RunId>,
    /// For people and filters.
    pub labels: BTreeMap<String, String>,
    /// Where it stands.
    pub status: Status,
    /// The position of the last `RunStarted`: where replay begins.
    pub origin: Position,
    /// When the run first started.
    pub started_at: DateTime<Utc>,
    /// When it ended.
    pub ended_at: Option<DateTime<Utc>>,
    /// Set when events at the beginning of the history were removed.
    pub pruned: Option<Pruned>,
}

/// Events that were removed from the beginning of a history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pruned {
    /// How many: the position of the first event that is left.
    pub events: Position,
    /// When.
    pub at: DateTime<Utc>,
}

impl Summary {
    /// The summary of a history that begins with `first`; `None` if that is not a `RunStarted`.
    pub fn begin(first: &Event) -> Option<Self> {
        let EventKind::RunStarted { workflow, parent, labels, .. } = &first.kind else {
            return None;
        };
        Some(Self {
            workflow: workflow.clone(),
            parent: parent.clone(),
            labels: labels.clone(),
            status: Status::Running,
            origin: first.position,
            started_at: first.at,
            ended_at: None,
            pruned: None,
        })
    }

    /// When the history of this run was pruned; `None` also for a run that was started again since.
    pub fn pruned_at(&self) -> Option<DateTime<Utc>> {
        self.pruned.filter(|pruned| pruned.events == self.origin).map(|pruned| pruned.at)
    }

    /// Takes the next event in, and says whether anything changed.
    pub fn apply(&mut self, event: &Event) -> bool {
        let status = match &event.kind {
            EventKind::RunStarted { workflow, cause, .. } => {
                self.workflow.clone_from(workflow);
                self.origin = event.position;
                self.ended_at = None;
                if *cause != Cause::Started {
                    self.status = Status::Running;
                }
                return true;
            }
            // Nothing but these ends a pause: what a paused run records beside it does not set it
            // going.
            kind if matches!(self.status, Status::Paused(_)) && !kind.ends_pause() => return false,
            EventKind::MessageAwaited { deadline, .. } => {
                Status::Waiting { until: *deadline, machine: None }
            }
            EventKind::TimerStarted { fire_at, .. } => {
                Status::Waiting { until: Some(*fire_at), machine: None }
            }
            EventKind::ActivityFailed { retry_at: until @ Some(_), failure, .. } => {
                let machine =
                    (failure.kind == FailureKind::Machine).then(|| failure.message.clone());
                Status::Waiting { until: *until, machine }
            }
            EventKind::RunPaused(request) => Status::Paused(request.clone()),
            EventKind::RunParked { effect, .. } => Status::Parked(effect.clone()),
            EventKind::RunCompleted { .. } => Status::Completed,
            EventKind::RunFailed { failure } => Status::Failed(failure.message.clone()),
            EventKind::RunCancelled | EventKind::RunTerminated(_) => Status::Cancelled,
            _ => Status::Running,
        };
        if status == self.status {
            return false;
        }
        if status.is_terminal() {
            self.ended_at = Some(event.at);
        }
        self.status = status;
        true
    }
}
