//! The projection of a run's history, folded from its events for every reader.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, SecondsFormat, Utc};
use longhaul_engine::event::Cause;
use longhaul_engine::{
    Activity, Event, EventKind, Failure, FailureKind, Message, MessageBody, Outcome, Payload,
    Position, RunId, Slot,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::contracts::{
    ChecksInput, ChecksReport, Evidence, Land, LandInput, MergeCandidate, MergeInput, Merged,
    RunChecks, RunSetup, Seal, Sealed, SessionInput, SessionReport, SetupInput, SetupReport,
};
use crate::feature::{COPIED, FeatureOutcome, FeatureProgress};
use crate::session::{SessionStart, SessionWorkflow};

use super::audit::AuditEntry;
use super::session::{Session, SessionRecord, SessionState, Step};

/// The current activity or wait of a run.
#[derive(Debug, Clone, PartialEq)]
pub enum CurrentWait {
    /// Waits for the next attempt.
    Retry {
        /// The activity.
        name: String,
        /// The number of the failed attempt.
        attempt: u32,
        /// The failure.
        failure: Failure,
        /// The time of the next attempt.
        at: DateTime<Utc>,
    },
    /// Waits for a message, perhaps with a deadline.
    Message {
        /// The deadline.
        deadline: Option<DateTime<Utc>>,
    },
    /// Waits for a time.
    Timer {
        /// The end of the wait.
        at: DateTime<Utc>,
    },
    /// A guarded activity is in progress, or was when its owner died.
    Call {
        /// The activity.
        name: String,
        /// The start of the attempt.
        since: DateTime<Utc>,
    },
}

/// The counters of an activity.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ActivityCounts {
    /// Its name.
    pub name: String,
    /// Completed calls.
    pub completed: u32,
    /// Attempts, including failed ones.
    pub attempts: u32,
    /// Attempts that failed.
    pub failures: u32,
    /// The last failed attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_failure: Option<LastFailure>,
}

/// The last failed attempt of an activity.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LastFailure {
    /// The position of its event in the history.
    pub position: Position,
    /// The time of its recording.
    pub at: DateTime<Utc>,
    /// The number of the attempt, from 1.
    pub attempt: u32,
    /// The kind of failure.
    pub kind: FailureClass,
    /// The failure message.
    pub message: String,
    /// The time of the next attempt; absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_at: Option<DateTime<Utc>>,
}

/// The kind of failure of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FailureClass {
    /// It may succeed when repeated.
    Retryable,
    /// It is permanent.
    Terminal,
    /// The attempt was cancelled.
    Cancelled,
    /// The machine failed: a full disk, no descriptors.
    Machine,
    /// A limit of a provider was reached.
    RateLimited,
}

/// A check run by Longhaul, with its evidence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CheckRun {
    /// The position of its event in the history.
    pub position: Position,
    /// The time of its recording.
    pub at: DateTime<Utc>,
    /// The step of the feature: `gates`, `merging`.
    pub step: String,
    /// Whether it passed.
    pub passed: bool,
    /// The command, its result, and its output.
    #[serde(flatten)]
    pub evidence: Evidence,
}

/// A segment of a history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Segment {
    /// The position of its first event in the history.
    pub position: Position,
    /// The time of its recording.
    pub at: DateTime<Utc>,
    /// The cause of its beginning.
    pub cause: SegmentCause,
}

/// The cause of a segment of a history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SegmentCause {
    /// The run was started.
    Started,
    /// The run continued as new with its state as input, to keep its history short.
    ContinuedAsNew,
    /// The finished run was started again.
    Restarted,
}

/// The time of the last gates of a feature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastTested {
    /// The time of their recording.
    pub at: DateTime<Utc>,
    /// As in the feature list.
    pub text: String,
}

/// A commit to land.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// The commit.
    pub commit: String,
    /// The time written into it.
    pub at: String,
    /// Whether it is on the target already: the repeated work changed nothing.
    pub is_old: bool,
}

/// The projection of a history.
#[derive(Debug, Clone, Default)]
pub struct RunView {
    /// The number of events.
    pub events: u64,
    /// The time of the last event.
    pub last_at: Option<DateTime<Utc>>,
    /// The last published progress of a feature run.
    pub progress: FeatureProgress,
    /// The current activity or wait.
    pub waits: Option<CurrentWait>,
    /// Its activities, by name.
    pub activities: BTreeMap<String, ActivityCounts>,
    /// The checks that ran, in order.
    pub checks: Vec<CheckRun>,
    /// The sessions, in the order of their start.
    pub sessions: Vec<Session>,
    /// The segments of the history.
    pub segments: Vec<Segment>,
    /// The requests of people.
    pub audit: Vec<AuditEntry>,
    /// The outcome of the last segment of a feature run.
    pub outcome: Option<FeatureOutcome>,
    /// Whether the run is over.
    pub is_over: bool,
    /// The time of the last gates.
    pub tested: Option<LastTested>,
    /// The same, for gates recorded by a commit on the target; a landing without changes has none.
    pub landed: Option<LastTested>,
    /// The commit to land.
    pub candidate: Option<Candidate>,
    /// Whether the next checks are the baseline's.
    pub expects_baseline: bool,
    /// The number of events copied from the run that this one was forked from.
    copied: u64,
    /// Calls with a recorded start and no recorded end.
    open: BTreeSet<Slot>,
}

impl RunView {
    /// The view of a whole history, or of its last segment.
    pub fn of(events: &[Event]) -> Self {
        let mut view = Self::default();
        for event in events {
            view.apply(event);
        }
        view
    }

    /// Applies the next event.
    pub fn apply(&mut self, event: &Event) {
        self.events = event.position + 1;
        self.last_at = Some(event.at);
        self.audit.extend(AuditEntry::of(event));
        if let Some(session) = self.sessions.last_mut()
            && !announces_session(event)
        {
            session.touch(event.at);
        }
        match &event.kind {
            EventKind::RunStarted { cause, labels, .. } => self.begin(event, cause, labels),
            EventKind::StatusPublished { key, value, .. } if key == FeatureProgress::KEY => {
                // An unreadable value changes nothing.
                self.progress = value.read().unwrap_or_else(|_| std::mem::take(&mut self.progress));
            }
            EventKind::ActivityStarted { slot, name, .. } => {
                self.waits = Some(CurrentWait::Call { name: name.clone(), since: event.at });
                self.activity(name).attempts += 1;
                self.open.insert(*slot);
            }
            EventKind::ActivityFailed { slot, name, attempt, failure, retry_at, .. } => {
                self.count(*slot, name);
                self.fail(event, name, *attempt, failure, *retry_at);
            }
            EventKind::ActivityCompleted { slot, name, input, output, .. } => {
                self.waits = None;
                self.count(*slot, name);
                self.activity(name).completed += 1;
                self.complete(event, name, input, output);
            }
            EventKind::MessageAwaited { deadline, .. } => {
                self.waits = Some(CurrentWait::Message { deadline: *deadline });
            }
            EventKind::TimerStarted { fire_at, .. } => {
                self.waits = Some(CurrentWait::Timer { at: *fire_at });
            }
            EventKind::ChildStarted { run, workflow, input, .. }
                if workflow == SessionWorkflow::NAME =>
            {
                if let Ok(start) = input.read::<SessionStart>() {
                    self.begin_session(event, run, &start.session);
                }
            }
            EventKind::MessageReceived { message, .. } => {
                self.waits = None;
                if let Some(Message { body: MessageBody::ChildEnded { run, outcome }, .. }) =
                    message
                {
                    self.end_session(event, run, outcome);
                }
            }
            EventKind::TimerFired { .. } => self.waits = None,
            EventKind::RunParked { .. } => self.sessions.iter_mut().for_each(Session::interrupt),
            EventKind::RunCompleted { output } => {
                self.outcome = output.read().ok();
                if let Some(
                    FeatureOutcome::Passed { progress, .. }
                    | FeatureOutcome::Blocked { progress, .. },
                ) = &self.outcome
                {
                    self.progress = progress.clone();
                }
                self.end(event);
            }
            EventKind::RunFailed { .. } | EventKind::RunCancelled | EventKind::RunTerminated(_) => {
                self.end(event);
            }
            _ => {}
        }
    }

    /// Whether an event is a copy from the run that this one was forked from.
    pub fn is_copied(&self, event: &Event) -> bool {
        (1..self.copied).contains(&event.position)
    }

    /// The current session, or the last one of this segment.
    pub fn session(&self) -> Option<&Session> {
        let is_own = |session: &&Session| {
            session.record.segment == self.segments.len() && !session.record.is_copied
        };
        self.sessions.last().filter(is_own)
    }

    /// The request that ended the last segment.
    pub fn ended_by(&self) -> Option<&AuditEntry> {
        let since = self.segments.last().map_or(0, |segment| segment.position);
        self.audit.iter().rev().find(|entry| entry.position >= since && entry.ended().is_some())
    }

    /// The last failed check, unless the same command passed later.
    pub fn failed_check(&self) -> Option<&CheckRun> {
        let last = self.checks.iter().rev().find(|check| !check.passed)?;
        let passed_later = |later: &CheckRun| {
            later.passed
                && later.position > last.position
                && later.evidence.command == last.evidence.command
        };
        (!self.checks.iter().any(passed_later)).then_some(last)
    }

    fn begin(&mut self, event: &Event, cause: &Cause, labels: &BTreeMap<String, String>) {
        let cause = match cause {
            Cause::Started => SegmentCause::Started,
            Cause::ContinuedAsNew => SegmentCause::ContinuedAsNew,
            Cause::Restarted => SegmentCause::Restarted,
        };
        self.segments.push(Segment { position: event.position, at: event.at, cause });
        self.copied = labels.get(COPIED).and_then(|copied| copied.parse().ok()).unwrap_or(0);
        self.open.clear();
        self.waits = None;
        self.progress.stage = None;
        self.outcome = None;
        self.is_over = false;
        self.candidate = None;
        self.expects_baseline = false;
    }

    fn end(&mut self, event: &Event) {
        self.is_over = true;
        self.sessions.iter_mut().for_each(|session| session.close(event.at));
    }

    fn activity(&mut self, name: &str) -> &mut ActivityCounts {
        let new = || ActivityCounts { name: name.to_owned(), ..ActivityCounts::default() };
        self.activities.entry(name.to_owned()).or_insert_with(new)
    }

    /// Counts a completed attempt whose start was not recorded.
    fn count(&mut self, slot: Slot, name: &str) {
        let is_new = !self.open.remove(&slot);
        self.activity(name).attempts += u32::from(is_new);
    }

    fn fail(
        &mut self,
        event: &Event,
        name: &str,
        attempt: u32,
        failure: &Failure,
        retry_at: Option<DateTime<Utc>>,
    ) {
        let retry = |at| CurrentWait::Retry {
            name: name.to_owned(),
            attempt,
            failure: failure.clone(),
            at,
        };
        self.waits = retry_at.map(retry);
        let activity = self.activity(name);
        activity.failures += 1;
        activity.last_failure = Some(LastFailure {
            position: event.position,
            at: event.at,
            attempt,
            kind: FailureClass::from(&failure.kind),
            message: failure.message.clone(),
            retry_at,
        });
    }

    fn end_session(&mut self, event: &Event, run: &RunId, outcome: &Outcome) {
        let session = self.sessions.iter_mut().find(|session| session.run == run.as_str());
        let Some(session) = session else { return };
        match outcome {
            Outcome::Completed(report) => match report.read::<SessionReport>() {
                Ok(report) => session.end(event.at, &report),
                Err(_) => session.interrupt(),
            },
            Outcome::Failed(failure) => session.fail(event.at, &failure.message),
            Outcome::Cancelled => session.interrupt(),
        }
    }

    fn begin_session(&mut self, event: &Event, run: &RunId, input: &SessionInput) {
        let segment = self.segments.len();
        if let Some(last) = self.sessions.last_mut() {
            if (last.number, last.record.segment) == (input.number, segment) {
                // That one was not needed.
                last.run = run.to_string();
                last.state = SessionState::Working;
                last.failure = None;
                last.ended_at = None;
                return last.touch(event.at);
            }
            last.close(event.at);
        }
        let record = SessionRecord {
            segment,
            position: event.position,
            is_copied: self.is_copied(event),
            last_activity: event.at,
            ..SessionRecord::default()
        };
        self.sessions.push(Session {
            number: input.number,
            run: run.to_string(),
            driver: input.agent.driver,
            reason: input.reason,
            attempts: 1,
            state: SessionState::Working,
            failure: None,
            started_at: event.at,
            ended_at: None,
            seconds: None,
            log: None,
            record,
        });
    }

    fn complete(&mut self, event: &Event, name: &str, input: &Payload, output: &Payload) {
        match name {
            RunSetup::NAME => {
                let is_merged =
                    input.read::<SetupInput>().is_ok_and(|input| input.commit.is_some());
                self.expects_baseline = !is_merged;
                let report = output.read::<SetupReport>().ok();
                self.take_checks(event, report.and_then(|report| report.evidence));
            }
            RunChecks::NAME => self.take_gates(event, input, output),
            Seal::NAME => {
                let Ok(sealed) = output.read::<Sealed>() else { return };
                self.candidate = None;
                self.pass(Step::Checkpoint);
                if let Some(session) = self.sessions.last_mut() {
                    session.record.notes.push(sealed.notes);
                    session.record.checkpoints.push((event.position, event.at, sealed.commit));
                }
            }
            MergeCandidate::NAME => {
                let (Ok(input), Ok(Merged::Candidate { commit, tip, .. })) =
                    (input.read::<MergeInput>(), output.read::<Merged>())
                else {
                    return;
                };
                let is_old = commit == tip;
                self.candidate = Some(Candidate { commit, at: input.at, is_old });
                self.pass(Step::Merge);
            }
            Land::NAME => self.land(event, input),
            _ => {}
        }
    }

    fn take_gates(&mut self, event: &Event, input: &Payload, output: &Payload) {
        let (Ok(input), Ok(report)) = (input.read::<ChecksInput>(), output.read::<ChecksReport>())
        else {
            return;
        };
        let is_baseline = std::mem::take(&mut self.expects_baseline);
        if !is_baseline && !self.is_copied(event) {
            let text = event.at.to_rfc3339_opts(SecondsFormat::Secs, true);
            self.tested = Some(LastTested { at: event.at, text });
            if report.failed().is_none() {
                self.pass(if self.is_candidate(&input.commit) {
                    Step::MergedGates
                } else {
                    Step::Gates
                });
            }
        }
        self.take_checks(event, report.evidence);
    }

    /// Whether a commit is the merged result to land.
    pub(crate) fn is_candidate(&self, commit: &str) -> bool {
        self.candidate.as_ref().is_some_and(|candidate| candidate.commit == commit)
    }

    fn take_checks(&mut self, event: &Event, evidence: impl IntoIterator<Item = Evidence>) {
        let step = self.progress.step().unwrap_or_default();
        self.checks.extend(evidence.into_iter().map(|evidence| CheckRun {
            position: event.position,
            at: event.at,
            step: step.clone(),
            passed: evidence.passed(),
            evidence,
        }));
    }

    fn land(&mut self, event: &Event, input: &Payload) {
        self.pass(Step::Landing);
        let Ok(input) = input.read::<LandInput>() else { return };
        // The time of the test in the commit's feature list. The list of the user must not differ
        // from it.
        let Some(candidate) =
            self.candidate.take().filter(|candidate| candidate.commit == input.commit)
        else {
            return;
        };
        let tested = LastTested { at: event.at, text: candidate.at };
        if !candidate.is_old {
            self.landed = Some(tested.clone());
        }
        self.tested = Some(tested);
    }

    fn pass(&mut self, step: Step) {
        if let Some(session) = self.sessions.last_mut() {
            session.record.steps.insert(step);
        }
    }
}

impl From<&FailureKind> for FailureClass {
    fn from(kind: &FailureKind) -> Self {
        match kind {
            FailureKind::Retryable => Self::Retryable,
            FailureKind::Terminal => Self::Terminal,
            FailureKind::Cancelled => Self::Cancelled,
            FailureKind::Machine => Self::Machine,
            FailureKind::RateLimited { .. } => Self::RateLimited,
        }
    }
}

/// Whether an event concerns the next session, not the previous one.
fn announces_session(event: &Event) -> bool {
    match &event.kind {
        EventKind::ChildStarted { workflow, .. } => workflow == SessionWorkflow::NAME,
        EventKind::StatusPublished { .. } => true,
        _ => false,
    }
}
