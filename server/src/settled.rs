//! When a project has come to rest, and what that means for a script.

use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use longhaul_engine::RunId;

use crate::status::{ProjectState, StatusDocument};

/// How long nothing may be active before a project that cannot go on counts as settled.
const QUIET: Duration = Duration::from_secs(1);

/// How long a project may wait for nothing but the machine, or an agent that cannot work, before it
/// counts as settled.
const MACHINE_WAIT: Duration = Duration::from_mins(5);

/// How long something else must happen in a project before that wait is counted anew: an attempt of
/// a guarded activity is recorded as running until the machine fails it again.
const ATTEMPT: Duration = Duration::from_secs(10);

/// A project that is being watched.
pub struct Watched {
    /// The run of the project.
    pub id: RunId,
    quiet_since: Option<Instant>,
    /// Since when it waits for nothing but the machine, and when that was seen last.
    machine: Option<(Instant, Instant)>,
    /// Since when it is watched.
    begun: DateTime<Utc>,
}

impl Watched {
    /// Begins to watch a project.
    pub fn new(id: RunId) -> Self {
        Self { id, quiet_since: None, machine: None, begun: Utc::now() }
    }

    /// Whether it has waited for nothing but an agent that cannot work for as long as for the
    /// machine.
    fn has_waited_for_agent(&self, document: &StatusDocument) -> bool {
        document.agent_wait().is_some_and(|paused| {
            let waited = Utc::now() - paused.since.max(self.begun);
            waited.to_std().is_ok_and(|waited| waited >= machine_wait())
        })
    }

    /// Whether it has waited for nothing but the machine for as long as [`machine_wait`] says.
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

/// `LONGHAUL_MACHINE_WAIT` seconds, or the default.
pub fn machine_wait() -> Duration {
    let told = std::env::var("LONGHAUL_MACHINE_WAIT").ok().and_then(|seconds| seconds.parse().ok());
    told.map_or(MACHINE_WAIT, Duration::from_secs)
}

/// Whether nothing more happens in a project without a person, or before the machine works again.
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
        // A project with a message in its mailbox is active, so it has acted on whatever it was
        // sent before.
        return document.active_runs == 0;
    }
    // What is paused, parked or stuck does not move; nor does what waits for it.
    let is_held = document.status == ProjectState::Paused
        || !document.stuck.is_empty()
        || document.has_held();
    if document.active_runs > 0 || !is_held {
        watched.quiet_since = None;
        return false;
    }
    watched.quiet_since.get_or_insert_with(Instant::now).elapsed() >= QUIET
}

/// How a settled project stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// All features pass, and their work is on the target branch.
    Passed,
    /// A feature is blocked, or a run has diverged.
    Blocked,
    /// A person has to act: it is paused, halted or parked, or its work waits beside the target
    /// branch.
    Suspended,
    /// Its list or its settings are wrong.
    Misconfigured,
    /// The machine, the log or the disk failed.
    Failed,
}

/// How a settled project stands.
pub fn verdict(document: &StatusDocument) -> Verdict {
    if document.stuck.iter().any(|stuck| !stuck.has_diverged) || document.vain_wait().is_some() {
        Verdict::Failed
    } else if !document.stuck.is_empty() {
        Verdict::Blocked
    } else if document.problem.is_some() {
        Verdict::Misconfigured
    } else if matches!(document.status, ProjectState::Paused | ProjectState::Cancelled)
        || document.has_held()
    {
        Verdict::Suspended
    } else if document.counts.passed < document.counts.total {
        Verdict::Blocked
    } else if document.waits_on_next.is_some() {
        Verdict::Suspended
    } else {
        Verdict::Passed
    }
}

#[cfg(test)]
mod tests;
