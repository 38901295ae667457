//! What the histories of a project must show at its end, however often it died on the way.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use anyhow::{Result, ensure};
use chrono::{DateTime, Utc};
use longhaul_engine::{
    Activity, Event, EventKind, EventLog, MessageBody, Outcome, RunId, Slot, Workflows, verify,
};
use longhaul_workflows::batch::BatchWorkflow;
use longhaul_workflows::contracts::{LoadBacklog, RunSession, SessionInput};
use longhaul_workflows::feature::{FeatureProgress, FeatureWorkflow};
use longhaul_workflows::project::{ProjectWorkflow, signal};
use longhaul_workflows::session::SessionWorkflow;

use crate::project::Mark;

/// The workflows of the product.
pub fn workflows() -> Workflows {
    Workflows::new()
        .with(FeatureWorkflow::NAME, FeatureWorkflow)
        .with(ProjectWorkflow::NAME, ProjectWorkflow)
        .with(BatchWorkflow::NAME, BatchWorkflow)
        .with(SessionWorkflow::NAME, SessionWorkflow)
}

/// The histories of all runs of a log.
#[derive(Debug)]
pub struct Histories(BTreeMap<RunId, Vec<Event>>);

/// How often things were done, as far as it is written down.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Attempts of activities that left something in a history. One that was killed is in it only
    /// if it was guarded.
    pub attempts: usize,
    /// Activities that came to their end.
    pub completed: usize,
    /// Attempts that failed.
    pub failed: usize,
    /// Attempts of guarded activities that were begun.
    pub started: usize,
    /// Sessions that came to their end.
    pub sessions: usize,
    /// Processes of an agent that were begun.
    pub processes: usize,
    /// Processes of an agent that did not come to their end.
    pub cut: usize,
    /// Processes of an agent that were begun although the session was recorded already.
    pub repeated: usize,
}

impl fmt::Display for Counts {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{} attempts of activities ({} completed, {} failed, {} of guarded ones started); {} sessions, {} agents begun \
             ({} of them cut, which is no duplicate: their sessions went on); duplicates: {} sessions",
            self.attempts,
            self.completed,
            self.failed,
            self.started,
            self.sessions,
            self.processes,
            self.cut,
            self.repeated
        )
    }
}

impl Histories {
    /// Reads them.
    pub async fn of(store: &dyn EventLog) -> Result<Self> {
        let mut histories = BTreeMap::new();
        for (run, _) in store.runs("").await? {
            let events = store.read(&run, 0).await?;
            histories.insert(run, events);
        }
        Ok(Self(histories))
    }

    /// Checks what holds for every log: positions have no gaps, no step is recorded twice, and the
    /// decisions of every run are the same when they are made again from its history.
    pub fn check(&self) -> Result<()> {
        for (run, events) in &self.0 {
            let mut done: BTreeSet<Slot> = BTreeSet::new();
            for (expected, event) in (0_u64..).zip(events) {
                ensure!(
                    event.position == expected,
                    "{run}: {} follows on {expected}",
                    event.position
                );
                match &event.kind {
                    EventKind::RunStarted { .. } => done.clear(),
                    EventKind::ActivityCompleted { slot, name, .. } => {
                        ensure!(done.insert(*slot), "{run}: {name} at {slot} is recorded twice");
                    }
                    _ => {}
                }
            }
            let diverged = verify(&workflows(), run, events)?;
            ensure!(
                diverged.is_none(),
                "{run} decides otherwise when it is replayed: {diverged:?}"
            );
        }
        Ok(())
    }

    /// Counts what was done, with what the agent wrote down.
    pub fn counts(&self, marks: &[Mark]) -> Counts {
        let mut counts = Counts::default();
        let mut attempts = BTreeSet::new();
        for (run, event) in
            self.0.iter().flat_map(|(run, events)| events.iter().map(move |event| (run, event)))
        {
            let count = match event.kind {
                EventKind::ActivityCompleted { .. } => &mut counts.completed,
                EventKind::ActivityFailed { .. } => &mut counts.failed,
                EventKind::ActivityStarted { .. } => &mut counts.started,
                _ => continue,
            };
            *count += 1;
            if let EventKind::ActivityCompleted { slot, attempt, .. }
            | EventKind::ActivityFailed { slot, attempt, .. }
            | EventKind::ActivityStarted { slot, attempt, .. } = event.kind
            {
                attempts.insert((run, slot, attempt));
            }
        }
        counts.attempts = attempts.len();
        let recorded = self.recorded_sessions();
        counts.sessions = recorded.len();
        counts.processes = marks.len();
        counts.cut = marks.iter().filter(|mark| !mark.ended).count();
        let is_repeated =
            |mark: &&Mark| recorded.get(&mark.session).is_some_and(|at| mark.began > *at);
        counts.repeated = marks.iter().filter(is_repeated).count();
        counts
    }

    /// When the report of each session was recorded, by the run of its feature and its number.
    fn recorded_sessions(&self) -> BTreeMap<(String, u32), DateTime<Utc>> {
        let mut recorded = BTreeMap::new();
        for (run, events) in &self.0 {
            for event in events {
                if let EventKind::ActivityCompleted { name, input, .. } = &event.kind
                    && name == RunSession::NAME
                {
                    let input: SessionInput =
                        input.read().expect("a session was recorded with its input");
                    let feature_run = run.as_str().rsplit_once('/').map_or("", |(above, _)| above);
                    recorded.insert((feature_run.to_owned(), input.number), event.at);
                }
            }
        }
        recorded
    }

    /// The failures that were recorded: which run, which activity, why.
    pub fn failures(&self) -> Vec<String> {
        let mut failures = Vec::new();
        for (run, events) in &self.0 {
            for event in events {
                if let EventKind::ActivityFailed { name, attempt, failure, .. } = &event.kind {
                    failures.push(format!("{run} {name}, attempt {attempt}: {failure}"));
                }
            }
        }
        failures
    }

    /// What the histories hold, but for how it came about. The order within the run of a feature
    /// counts; what a project does depends on which of its features is faster, so that its
    /// order does not.
    pub fn essence(&self) -> BTreeMap<RunId, Vec<String>> {
        let essence = |events: &Vec<Event>| {
            let is_project = matches!(&events[0].kind, EventKind::RunStarted { workflow, .. } if workflow == ProjectWorkflow::NAME);
            let mut lines: Vec<String> =
                events.iter().filter_map(|event| essence(&event.kind, is_project)).collect();
            if is_project {
                lines.sort_unstable();
            } else {
                drop_gates_after_refresh(&mut lines);
            }
            lines
        };
        self.0.iter().map(|(run, events)| (run.clone(), essence(events))).collect()
    }
}

/// A retry begins with the gates if another feature landed meanwhile, which depends on their speed.
fn drop_gates_after_refresh(lines: &mut Vec<String>) {
    let gates =
        ["StatusPublished gates", "ActivityCompleted run_setup", "ActivityCompleted run_checks"];
    let mut is_after_refresh = false;
    lines.retain(|line| {
        // A failed gate is followed by a look for edits.
        let is_gate = gates.iter().any(|gate| line.starts_with(gate)) || line == "MessageReceived ";
        is_after_refresh =
            line.starts_with("ActivityCompleted refresh_worktree") || (is_after_refresh && is_gate);
        !(is_after_refresh && is_gate)
    });
}

/// What an event says that must be the same in every life. Waiting is not always seen; an attempt
/// that died is followed by another, and each life reads the list anew; what a project publishes
/// depends on the order of what it hears.
fn essence(kind: &EventKind, is_project: bool) -> Option<String> {
    let what = match kind {
        EventKind::MessageAwaited { .. }
        | EventKind::ActivityStarted { .. }
        | EventKind::ActivityProgressed { .. } => {
            return None;
        }
        EventKind::ActivityFailed { retry_at: Some(_), .. } => return None,
        EventKind::StatusPublished { .. } if is_project => return None,
        EventKind::ActivityCompleted { name, .. } if name == LoadBacklog::NAME => return None,
        EventKind::StatusPublished { value, .. } => value.read::<FeatureProgress>().map_or_else(
            |error| error.to_string(),
            |progress| {
                format!("{} ({} tampered)", progress.step().unwrap_or_default(), progress.tampered)
            },
        ),
        EventKind::ActivityCompleted { name, .. } | EventKind::ActivityFailed { name, .. } => {
            name.clone()
        }
        EventKind::ChildStarted { run, .. } => run.to_string(),
        EventKind::SignalSent { to, name, .. } => format!("{name} to {to}"),
        EventKind::CancelSent { to, .. } => format!("cancel to {to}"),
        EventKind::MessageReceived { message: Some(message), .. } => match &message.body {
            MessageBody::Signal { name, .. } if name == signal::SYNC || name == signal::RELOAD => {
                return None;
            }
            MessageBody::Signal { name, from, .. } => format!("{name} from {from:?}"),
            MessageBody::ChildEnded { run, outcome } => {
                format!("{run} ended well: {}", matches!(outcome, Outcome::Completed(_)))
            }
            order => format!("{order:?}"),
        },
        _ => String::new(),
    };
    Some(format!("{} {what}", kind.name()))
}
