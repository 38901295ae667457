//! The summary of a run, folded from its events: its status and its next wake-up.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};

use crate::event::{Cause, Event, EventKind, RequestedBy, UnknownEffect};
use crate::failure::FailureKind;
use crate::id::{Position, RunId};

/// The status of a run.
#[derive(Debug, Clone, PartialEq)]
pub enum Status {
    /// It has work to do or in progress.
    Running,
    /// It waits for a message, a timer, or the next attempt.
    Waiting {
        /// When it continues by itself.
        until: Option<DateTime<Utc>>,
        /// The machine failure that it waits for: a full disk, no descriptors.
        machine: Option<String>,
    },
    /// Paused by request.
    Paused(RequestedBy),
    /// Parked: the outcome of an effect is unknown.
    Parked(UnknownEffect),
    /// Completed with a result.
    Completed,
    /// Failed.
    Failed(String),
    /// Cancelled.
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

/// The fold of a history, which stores keep beside it so that a run can be found without reading
/// its events.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// The workflow that decides.
    pub workflow: String,
    /// The parent run.
    pub parent: Option<RunId>,
    /// Labels for people and filters.
    pub labels: BTreeMap<String, String>,
    /// Its status.
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
    /// How many: the position of the first remaining event.
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

    /// Applies the next event; returns whether anything changed.
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
            // Only these events end a pause: other events of a paused run leave it paused.
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
