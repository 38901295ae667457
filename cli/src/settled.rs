//! When a project has come to rest, and what that means for a script.

use std::time::{Duration, Instant};

use longhaul_engine::RunId;

use crate::exit::Exit;
use crate::status::{FeatureLine, ShownPhase, StatusDocument};

/// How long nothing may be active before a project that cannot go on counts as settled.
const QUIET: Duration = Duration::from_secs(1);

/// A project that is being watched.
pub(crate) struct Watched {
    pub(crate) id: RunId,
    quiet_since: Option<Instant>,
}

impl Watched {
    pub(crate) fn new(id: RunId) -> Self {
        Self { id, quiet_since: None }
    }
}

/// Whether nothing more will happen in a project without a person.
pub(crate) fn is_settled(watched: &mut Watched, document: &StatusDocument) -> bool {
    if matches!(document.phase, ShownPhase::Idle | ShownPhase::Halted) {
        // A project with a message in its mailbox is active, so it has acted on whatever it was sent before.
        return document.active_runs == 0;
    }
    // What is paused, parked or stuck does not move; nor does what waits for it.
    let is_held = document.phase == ShownPhase::Paused
        || !document.stuck.is_empty()
        || document.features.iter().any(FeatureLine::is_held);
    if document.active_runs > 0 || !is_held {
        watched.quiet_since = None;
        return false;
    }
    watched.quiet_since.get_or_insert_with(Instant::now).elapsed() >= QUIET
}

/// The exit code for a settled project.
pub(crate) fn exit(document: &StatusDocument) -> Exit {
    let in_hand = document.features.iter().any(FeatureLine::is_held);
    if document.stuck.iter().any(|stuck| !stuck.has_diverged) {
        Exit::Operational
    } else if !document.stuck.is_empty() {
        Exit::Finding
    } else if document.problem.is_some() {
        Exit::Usage
    } else if matches!(document.phase, ShownPhase::Paused | ShownPhase::Halted) || in_hand {
        Exit::Suspended
    } else if document.counts.passing < document.counts.total {
        Exit::Finding
    } else if document.waits_on_next.is_some() {
        Exit::Suspended
    } else {
        Exit::Ok
    }
}
