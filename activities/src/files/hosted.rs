//! The data of sessions that only their own histories hold.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use longhaul_engine::{Activity, Event, EventKind, Position, RunId};
use longhaul_workflows::contracts::{Seal, SealInput, SealStep, Sealed};
use longhaul_workflows::session::SessionProgress;

/// The sessions of a project.
#[derive(Debug, Default)]
pub(super) struct HostedSessions(BTreeMap<RunId, Hosted>);

/// A session, without its conversation.
#[derive(Debug, Default)]
pub(super) struct Hosted {
    /// The time of its last event.
    pub(super) last_at: Option<DateTime<Utc>>,
    /// Its current step.
    pub(super) step: String,
    /// Its checkpoints.
    pub(super) checkpoints: Vec<HostedCheckpoint>,
}

/// A commit of the work in the middle of a session.
#[derive(Debug)]
pub(super) struct HostedCheckpoint {
    /// Its position in the history of the session.
    pub(super) position: Position,
    pub(super) at: DateTime<Utc>,
    /// Its cause.
    pub(super) step: SealStep,
    pub(super) commit: String,
}

impl HostedSessions {
    /// Applies the events of a run.
    pub(super) fn apply(&mut self, run: &RunId, events: &[Event]) {
        let hosted = self.0.entry(run.clone()).or_default();
        for event in events {
            hosted.apply(event);
        }
    }

    /// The session of a run.
    pub(super) fn get(&self, run: &str) -> Option<&Hosted> {
        self.0.get(&RunId::new(run).ok()?)
    }
}

impl Hosted {
    fn apply(&mut self, event: &Event) {
        self.last_at = Some(event.at);
        match &event.kind {
            EventKind::StatusPublished { key, value, .. } if key == SessionProgress::KEY => {
                self.step = value.read::<SessionProgress>().unwrap_or_default().step;
            }
            EventKind::ActivityCompleted { name, input, output, .. } if name == Seal::NAME => {
                if let (Ok(SealInput { step, .. }), Ok(Sealed { commit, .. })) =
                    (input.read(), output.read())
                {
                    let position = event.position;
                    let at = event.at;
                    self.checkpoints.push(HostedCheckpoint { position, at, step, commit });
                }
            }
            _ => {}
        }
    }
}
