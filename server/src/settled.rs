//! Detects that a project makes no more progress, and maps its state to an exit code.

use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use longhaul_engine::RunId;
use longhaul_workflows::projection::{ProjectState, State};

use crate::status::{FeatureLine, StatusDocument};

/// How long a project without progress must be inactive before it is settled.
const QUIET: Duration = Duration::from_secs(1);

/// How long a project may wait only for the machine, or for an agent that cannot work, before it is
/// settled.
const MACHINE_WAIT: Duration = Duration::from_mins(5);

/// Progress of this duration restarts that wait: an attempt of a guarded activity counts as running
/// until the machine fails it again.
const ATTEMPT: Duration = Duration::from_secs(10);

/// The observed progress of a project.
pub struct Watched {
    /// The run of the project.
    pub id: RunId,
    quiet_since: Option<Instant>,
    /// Since when it waits only for the machine, and when this was seen last.
    machine: Option<(Instant, Instant)>,
    /// Start of the observation.
    begun: DateTime<Utc>,
}

impl Watched {
    /// Starts to observe a project.
    pub fn new(id: RunId) -> Self {
        Self { id, quiet_since: None, machine: None, begun: Utc::now() }
    }

    /// Whether it settles soon, if nothing happens.
    pub(crate) fn is_timed(&self) -> bool {
        self.quiet_since.is_some()
    }

    /// Whether the wait for an unavailable agent, and for nothing else, has exceeded the machine
    /// limit.
    fn has_waited_for_agent(&self, document: &StatusDocument) -> bool {
        document.agent_wait().is_some_and(|paused| {
            let waited = Utc::now() - paused.since.max(self.begun);
            waited.to_std().is_ok_and(|waited| waited >= machine_wait())
        })
    }

    /// Whether the wait for the machine, and for nothing else, has exceeded [`machine_wait`].
    fn has_waited_for_machine(&mut self, document: &StatusDocument) -> bool {
        let now = Instant::now();
        if document.machine_wait().is_some() {
            let since = self.machine.map_or(now, |(since, _)| since);
            self.machine = Some((since, now));
            return now - since >= machine_wait();
        }
        self.machine = self.machine.filter(|(_, seen)| now - *seen < ATTEMPT);
        false
    }
}

/// The limit from `LONGHAUL_MACHINE_WAIT` in seconds, or the default.
pub fn machine_wait() -> Duration {
    let configured =
        std::env::var("LONGHAUL_MACHINE_WAIT").ok().and_then(|seconds| seconds.parse().ok());
    configured.map_or(MACHINE_WAIT, Duration::from_secs)
}

/// Whether a project makes no progress without a person or a repaired machine.
pub fn is_settled(watched: &mut Watched, document: &StatusDocument) -> bool {
    if watched.has_waited_for_machine(document) || watched.has_waited_for_agent(document) {
        return true;
    }
    if document.is_over {
        return document.active_runs == 0;
    }
    let is_at_rest = match document.status {
        ProjectState::Done | ProjectState::Cancelled => true,
        ProjectState::NeedsAttention => !document.has_held(),
        ProjectState::Running | ProjectState::Waiting | ProjectState::Paused => false,
    };
    if is_at_rest {
        // A project with an unread message is active, so a settled one has acted on all messages.
        return document.active_runs == 0;
    }
    // Paused, parked and stuck runs do not progress; nor do their dependants.
    let is_held = document.status == ProjectState::Paused
        || !document.stuck.is_empty()
        || document.has_held();
    if document.active_runs > 0 || !is_held {
        watched.quiet_since = None;
        return false;
    }
    watched.quiet_since.get_or_insert_with(Instant::now).elapsed() >= QUIET
}

/// The outcome of a settled project.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// All features pass and are merged into the target branch.
    Passed,
    /// A feature is blocked, or a run has diverged.
    Blocked,
    /// A person must act: it is paused, halted or parked, features were cancelled, its budget is
    /// spent, or finished work waits on `longhaul/next`.
    Suspended,
    /// Its list or its settings are wrong.
    Misconfigured,
    /// The machine, the log or the disk failed.
    Failed,
}

/// The outcome of a settled project.
pub fn verdict(document: &StatusDocument) -> Verdict {
    if document.stuck.iter().any(|stuck| !stuck.has_diverged) || document.limited_wait().is_some() {
        Verdict::Failed
    } else if !document.stuck.is_empty() {
        Verdict::Blocked
    } else if document.problem.is_some() {
        Verdict::Misconfigured
    } else if matches!(document.status, ProjectState::Paused | ProjectState::Cancelled)
        || document.has_held()
        || (document.counts.passed < document.counts.total && document.over_budget.is_some())
    {
        Verdict::Suspended
    } else if document.counts.passed < document.counts.total {
        // Features that a person ended hold back only those that depend on them.
        let is_by_person = document.counts.cancelled > 0 && document.counts.blocked == 0;
        if is_by_person { Verdict::Suspended } else { Verdict::Blocked }
    } else if document.waits_on_next.is_some() {
        Verdict::Suspended
    } else {
        Verdict::Passed
    }
}

/// The outcome of one feature; `None`: it can still make progress, or it is not in the list.
pub fn verdict_of(document: &StatusDocument, feature: &str) -> Option<Verdict> {
    let line = |id: &str| document.features.iter().find(|line| line.id == id);
    let verdict = match line(feature)? {
        line if line.status == State::Passed => return Some(Verdict::Passed),
        // Unread messages count as active: they may change its state.
        _ if document.active_runs > 0 => return None,
        FeatureLine { status: State::Blocked | State::Failed, .. } => Verdict::Blocked,
        line if line.needs_person => Verdict::Suspended,
        FeatureLine { status: State::Cancelled | State::Paused | State::Parked, .. } => {
            Verdict::Suspended
        }
        _ if document.over_budget.is_some() => Verdict::Suspended,
        line => line.waiting_for.iter().find_map(|id| verdict_of(document, id))?,
    };
    Some(verdict)
}

#[cfg(test)]
mod tests;
