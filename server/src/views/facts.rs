//! What a history says about the work of a run: folded from its events, once, for every view of it.

mod shown;

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use longhaul_engine::event::Cause;
use longhaul_engine::{Event, EventKind, Failure, FailureKind, RequestedBy, Slot};
use longhaul_workflows::contracts;
use longhaul_workflows::feature::FeatureProgress;
use serde_json::Value;

use super::Told;
pub(super) use shown::{Activity, LastFailure, Segment};
pub use shown::{Evidence, Session};

/// What is under way or waited for.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Waits {
    /// For the next try.
    Retry { name: String, attempt: u32, failure: Failure, at: DateTime<Utc> },
    /// For a message, or until a time.
    Message { deadline: Option<DateTime<Utc>> },
    /// For a time.
    Timer { at: DateTime<Utc> },
    /// A guarded activity runs, or ran when its owner died.
    Call { name: String, attempt: u32, since: DateTime<Utc> },
}

/// What a history amounts to.
#[derive(Debug, Clone, Default)]
pub(super) struct Facts {
    pub(super) events: u64,
    pub(super) last_at: Option<DateTime<Utc>>,
    pub(super) step: Option<String>,
    pub(super) waits: Option<Waits>,
    pub(super) activities: BTreeMap<String, Activity>,
    pub(super) evidence: Vec<Evidence>,
    pub(super) sessions: Vec<Session>,
    pub(super) segments: Vec<Segment>,
    pub(super) output: Option<longhaul_engine::Payload>,
    /// Who asked for the end, and why.
    pub(super) cancelled_by: Option<RequestedBy>,
    /// Who ended it at once, and why.
    pub(super) terminated_by: Option<RequestedBy>,
    /// What people told it.
    pub(super) told: Vec<Told>,
    /// Calls whose start is recorded, and whose end is not.
    open: BTreeSet<Slot>,
}

impl Facts {
    pub(super) fn of(events: &[Event]) -> Self {
        let mut facts = Self::default();
        for event in events {
            facts.take(event);
        }
        facts
    }

    fn take(&mut self, event: &Event) {
        self.events = event.position + 1;
        self.last_at = Some(event.at);
        self.told.extend(Told::of(event));
        match &event.kind {
            EventKind::RunStarted { cause, .. } => self.begin(event, cause),
            EventKind::StatusPublished { key, value, .. } if key == FeatureProgress::KEY => {
                self.step = value.read::<FeatureProgress>().ok().map(|progress| progress.step);
            }
            EventKind::ActivityStarted { slot, name, input, attempt } => {
                self.waits = Some(Waits::Call { name: name.clone(), attempt: *attempt, since: event.at });
                self.activity(name).attempts += 1;
                self.open.insert(*slot);
                if name == NAME_OF_SESSION {
                    self.begin_session(event.at, *slot, *attempt, input);
                }
            }
            EventKind::ActivityFailed { slot, name, attempt, failure, retry_at, .. } => {
                self.count(*slot, name);
                self.fail(event, name, *attempt, failure, *retry_at);
            }
            EventKind::ActivityCompleted { slot, name, input, attempt, output } => {
                self.waits = None;
                self.count(*slot, name);
                self.activity(name).completed += 1;
                if name == NAME_OF_SESSION {
                    self.begin_session(event.at, *slot, *attempt, input);
                    self.end_session(event.at, output);
                }
                self.take_evidence(event, name, output);
            }
            EventKind::MessageAwaited { deadline, .. } => self.waits = Some(Waits::Message { deadline: *deadline }),
            EventKind::TimerStarted { fire_at, .. } => self.waits = Some(Waits::Timer { at: *fire_at }),
            EventKind::MessageReceived { .. } | EventKind::TimerFired { .. } => self.waits = None,
            EventKind::CancelDelivered { request, .. } => self.cancelled_by = Some(request.clone()),
            EventKind::RunCompleted { output } => self.output = Some(output.clone()),
            EventKind::RunTerminated(request) => self.terminated_by = Some(request.clone()),
            _ => {}
        }
    }

    fn begin(&mut self, event: &Event, cause: &Cause) {
        let cause = match cause {
            Cause::Started => "started",
            Cause::ContinuedAsNew => "continued_as_new",
            Cause::Restarted => "restarted",
        };
        self.segments.push(Segment { position: event.position, at: event.at, cause: cause.into() });
        self.open.clear();
        self.waits = None;
        self.step = None;
        self.output = None;
        self.cancelled_by = None;
        self.terminated_by = None;
    }

    fn activity(&mut self, name: &str) -> &mut Activity {
        self.activities
            .entry(name.to_owned())
            .or_insert_with(|| Activity { name: name.to_owned(), ..Activity::default() })
    }

    /// Counts an attempt that ended, if its start was not recorded and counted.
    fn count(&mut self, slot: Slot, name: &str) {
        let is_new = !self.open.remove(&slot);
        self.activity(name).attempts += u32::from(is_new);
    }

    fn fail(&mut self, event: &Event, name: &str, attempt: u32, failure: &Failure, retry_at: Option<DateTime<Utc>>) {
        let retry = |at| Waits::Retry { name: name.to_owned(), attempt, failure: failure.clone(), at };
        self.waits = retry_at.map(retry);
        let activity = self.activity(name);
        activity.failures += 1;
        activity.last_failure = Some(LastFailure {
            position: event.position,
            at: event.at,
            attempt,
            kind: kind_of(failure).into(),
            message: failure.message.clone(),
            retry_at,
        });
        if let Some(session) = self.sessions.last_mut().filter(|session| name == NAME_OF_SESSION && session.is_open())
            && retry_at.is_none()
        {
            session.ended_at = Some(event.at);
            session.ending = Some(failure.message.clone());
        }
    }

    fn begin_session(&mut self, at: DateTime<Utc>, slot: Slot, attempt: u32, input: &longhaul_engine::Payload) {
        let Ok(input) = input.read::<contracts::SessionInput>() else { return };
        let call = slot.to_string();
        // A segment that began anew counts its calls from zero again.
        if let Some(session) = self.sessions.last_mut().filter(|session| session.call == call && session.is_open()) {
            session.attempts = session.attempts.max(attempt);
            return;
        }
        self.sessions.push(Session {
            number: input.number,
            call,
            reason: input.reason.as_str().into(),
            attempts: attempt,
            started_at: at,
            ended_at: None,
            seconds: None,
            ending: None,
            cost_usd: None,
            log: None,
        });
    }

    fn end_session(&mut self, at: DateTime<Utc>, output: &longhaul_engine::Payload) {
        let Ok(value) = output.read::<Value>() else { return };
        let Ok(report) = serde_json::from_value::<contracts::SessionReport>(value.clone()) else { return };
        let Some(session) = self.sessions.last_mut() else { return };
        session.ended_at = Some(at);
        session.seconds = Some(seconds(report.duration_ms));
        session.ending = Some(match report.ending {
            contracts::SessionEnding::ClaimsDone => "claims_done".into(),
            contracts::SessionEnding::ContextFull => "context_full".into(),
            contracts::SessionEnding::Landed { .. } => "landed".into(),
            contracts::SessionEnding::Failed { reason, .. } | contracts::SessionEnding::NotStarted { reason } => reason,
        });
        session.cost_usd = ["/cost_usd", "/usage/cost_usd"].into_iter().find_map(|at| value.pointer(at)?.as_f64());
        session.log = Some(report.log);
    }

    fn take_evidence(&mut self, event: &Event, name: &str, output: &longhaul_engine::Payload) {
        let is_checks = name == <contracts::RunChecks as longhaul_engine::Activity>::NAME;
        let is_setup = name == <contracts::RunSetup as longhaul_engine::Activity>::NAME;
        let left = if is_checks {
            output.read::<contracts::ChecksReport>().map(|report| report.evidence).unwrap_or_default()
        } else if is_setup {
            output.read::<contracts::SetupReport>().ok().and_then(|report| report.evidence).into_iter().collect()
        } else {
            return;
        };
        let step = self.step.clone().unwrap_or_default();
        self.evidence.extend(left.into_iter().map(|left| Evidence {
            position: event.position,
            at: event.at,
            step: step.clone(),
            passed: left.passed(),
            name: left.name,
            command: left.command,
            exit_code: left.exit_code,
            ended_by: left.ended_by,
            duration_ms: left.duration_ms,
            commit: left.commit,
            output_digest: left.output_digest,
            output_tail: left.output_tail,
            log: left.log,
            put_back: left.put_back,
        }));
    }

    /// The last check that failed, unless what failed passed later.
    pub(super) fn failed_check(&self) -> Option<&Evidence> {
        let last = self.evidence.iter().rev().find(|evidence| !evidence.passed)?;
        let mended = |later: &Evidence| later.passed && later.position > last.position && later.command == last.command;
        (!self.evidence.iter().any(mended)).then_some(last)
    }
}

/// The name of the activity that is a session.
pub(super) const NAME_OF_SESSION: &str = <contracts::RunSession as longhaul_engine::Activity>::NAME;

/// The kind of a failure, in one word.
pub(super) fn kind_of(failure: &Failure) -> &'static str {
    match failure.kind {
        FailureKind::Retryable => "retryable",
        FailureKind::Terminal => "terminal",
        FailureKind::Cancelled => "cancelled",
        FailureKind::Machine => "machine",
        FailureKind::RateLimited { .. } => "rate_limited",
    }
}

/// Milliseconds as seconds.
pub(super) fn seconds(milliseconds: u64) -> f64 {
    std::time::Duration::from_millis(milliseconds).as_secs_f64()
}
