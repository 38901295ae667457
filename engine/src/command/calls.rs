//! Calls of activities: the record of each call, and the comparison of a group of calls.

use chrono::{DateTime, Utc};

use super::{Command, Encoder, Record};
use crate::activity::Call;
use crate::describe;
use crate::event::{Event, EventKind};
use crate::failure::{Failure, FailureKind};
use crate::id::Slot;
use crate::payload::Payload;
use crate::policy::Failures;

/// Calls activities.
#[derive(Debug, Clone)]
pub(crate) struct Calls(pub(crate) Vec<Call>);

/// The recorded state of one call.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct CallState {
    /// Its result, if it has one.
    pub(crate) result: Option<Result<Payload, Failure>>,
    /// Attempts that count, whatever their outcome.
    pub(crate) attempts: u32,
    pub(crate) failures: Failures,
    /// Set while the outcome of the last guarded attempt is unknown.
    pub(crate) unknown: bool,
    /// When the next attempt is due.
    pub(crate) retry_at: Option<DateTime<Utc>>,
    /// The progress of the last attempt.
    pub(crate) progress: Option<Payload>,
}

impl CallState {
    /// Applies an event; `Err`: the event cannot follow.
    fn apply(&mut self, event: Event) -> Result<(), Box<Event>> {
        if self.result.is_some() {
            return Err(event.into());
        }
        match event.kind {
            EventKind::ActivityStarted { attempt, .. } => {
                self.attempts = attempt;
                self.unknown = true;
                self.retry_at = None;
            }
            EventKind::ActivityProgressed { details, .. } => self.progress = Some(details),
            EventKind::ActivityFailed { attempt, failure, retry_at, .. } => {
                self.record_failure(attempt, failure, retry_at);
            }
            EventKind::ActivityCompleted { output, .. } => self.result = Some(Ok(output)),
            // The completion follows in the same commit.
            EventKind::RunReconciled { happened, .. } => self.unknown = happened,
            _ => return Err(event.into()),
        }
        Ok(())
    }

    /// Applies the failure of an attempt. A machine failure does not count as an attempt, and
    /// leaves open whether a guarded one took effect.
    pub(crate) fn record_failure(
        &mut self,
        attempt: u32,
        failure: Failure,
        retry_at: Option<DateTime<Utc>>,
    ) {
        self.retry_at = retry_at;
        if failure.kind == FailureKind::Machine {
            self.attempts = attempt.saturating_sub(1);
            self.failures.of_machine += 1;
            return;
        }
        self.attempts = attempt;
        self.failures.of_machine = 0;
        self.unknown = false;
        if !matches!(failure.kind, FailureKind::RateLimited { .. }) {
            self.failures.counted += 1;
        }
        if retry_at.is_none() {
            self.result = Some(Err(failure));
        }
    }
}

impl Calls {
    /// The call of this command that an event answers, if any.
    fn answered(&self, kind: &EventKind) -> Option<usize> {
        let (slot, recorded) = match kind {
            EventKind::ActivityStarted { slot, name, input, .. }
            | EventKind::ActivityFailed { slot, name, input, .. }
            | EventKind::ActivityCompleted { slot, name, input, .. } => (slot, Some((name, input))),
            EventKind::ActivityProgressed { slot, .. } | EventKind::RunReconciled { slot, .. } => {
                (slot, None)
            }
            _ => return None,
        };
        let call = self.of(*slot)?;
        let is_same =
            recorded.is_none_or(|(name, input)| call.name == name && call.input == *input);
        is_same.then_some(usize::from(slot.call))
    }

    fn of(&self, slot: Slot) -> Option<&Call> {
        if usize::from(slot.calls) == self.0.len() {
            self.0.get(usize::from(slot.call))
        } else {
            None
        }
    }
}

impl Command for Calls {
    const NAME: &'static str = "call";
    type Answer = Vec<Result<Payload, Failure>>;
    type Progress = Vec<CallState>;

    fn read(&self, events: Vec<Event>) -> Result<Record<Self>, Box<Event>> {
        let mut states = vec![CallState::default(); self.0.len()];
        for event in events {
            let Some(index) = self.answered(&event.kind) else { return Err(event.into()) };
            states[index].apply(event)?;
        }
        if states.iter().any(|state| state.result.is_none()) {
            return Ok(Record::UnderWay(states));
        }
        Ok(Record::Complete(states.into_iter().filter_map(|state| state.result).collect()))
    }

    /// A call that failed for good while it was cancelled counts as cancelled.
    fn gives_way_to_cancel(results: &Self::Answer) -> bool {
        results.iter().any(Result::is_err)
    }

    fn encode(&self, encoder: &mut Encoder) {
        for call in &self.0 {
            encoder.field(call.name.as_bytes()).field(call.input.as_bytes());
        }
    }

    fn text(&self) -> String {
        let calls: Vec<_> =
            self.0.iter().map(|call| describe::call(call.name, &call.input)).collect();
        calls.join(" and ")
    }

    fn text_beside(&self, event: &EventKind) -> String {
        let Some(slot) = event.slot().filter(|slot| slot.calls > 1 || self.0.len() > 1) else {
            return self.text();
        };
        match self.of(slot) {
            Some(call) => describe::one_of(slot, describe::call(call.name, &call.input)),
            None => format!("{} ({} calls)", self.text(), self.0.len()),
        }
    }
}
