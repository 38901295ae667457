//! The end of a turn between two actions: the window is nearly full, or a limit is reached.

use longhaul_workflows::contracts::{AgentOutcome, AgentProgress};
use longhaul_workflows::resources::Resources;

use super::End;

/// When Longhaul ends the turn of an agent between two actions.
#[derive(Debug)]
pub(super) struct Boundary {
    /// The part of the window.
    handoff_at: f64,
    /// What the session may use.
    available: Option<Resources>,
    /// Why the turn is to end.
    reason: Option<String>,
}

impl Boundary {
    pub(super) fn new(handoff_at: f64, available: Option<Resources>) -> Self {
        Self { handoff_at, available, reason: None }
    }

    /// Whether this progress reaches the boundary; true once.
    pub(super) fn is_reached_by(&mut self, progress: &AgentProgress) -> bool {
        if self.reason.is_some() {
            return false;
        }
        let is_full = progress.window.is_some_and(|window| window.reaches(self.handoff_at));
        let lacking = self.available.and_then(|available| available.minus(progress.used()).lacks());
        self.reason = match lacking {
            _ if is_full => Some("the window is nearly full".into()),
            Some(resource) => Some(format!("its limit of {} is reached", resource.key())),
            None => None,
        };
        self.reason.is_some()
    }

    /// An end of the turn, with its cause.
    pub(super) fn typed(boundary: Option<&Self>, end: End) -> End {
        let reason = boundary.and_then(|boundary| boundary.reason.as_ref());
        match (end.outcome, reason) {
            (AgentOutcome::Interrupted | AgentOutcome::StoppedAtBoundary, Some(reason)) => {
                let message = format!("stopped between two actions, because {reason}");
                End::new(AgentOutcome::StoppedAtBoundary, message)
            }
            // A hook of the user has ended it.
            (AgentOutcome::StoppedAtBoundary, None) => {
                End { outcome: AgentOutcome::Completed, ..end }
            }
            _ => end,
        }
    }
}
