//! What the history of a run amounts to: folded from its events, once, for every reader.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, SecondsFormat, Utc};
use longhaul_engine::event::Cause;
use longhaul_engine::{Activity, Event, EventKind, Failure, FailureKind, Payload, Position, Slot};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::contracts::{
    ChecksInput, ChecksReport, Evidence, Land, LandInput, MergeCandidate, MergeInput, Merged,
    RunChecks, RunSession, RunSetup, Seal, Sealed, SessionInput, SessionReport, SetupInput,
    SetupReport,
};
use crate::feature::{COPIED, FeatureOutcome, FeatureProgress};

use super::audit::AuditEntry;
use super::session::{Session, SessionRecord, SessionState, Step};

/// What is under way or waited for.
#[derive(Debug, Clone, PartialEq)]
pub enum Waits {
    /// For the next attempt.
    Retry {
        /// The activity.
        name: String,
        /// The attempt that failed.
        attempt: u32,
        /// Why it failed.
        failure: Failure,
        /// When the next one is due.
        at: DateTime<Utc>,
    },
    /// For a message, or until a time.
    Message {
        /// That time.
        deadline: Option<DateTime<Utc>>,
    },
    /// For a time.
    Timer {
        /// That time.
        at: DateTime<Utc>,
    },
    /// A guarded activity runs, or ran when its owner died.
    Call {
        /// The activity.
        name: String,
        /// When it began.
        since: DateTime<Utc>,
    },
}

/// How often an activity was called and tried.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ActivityCounts {
    /// Its name.
    pub name: String,
    /// Calls that are done.
    pub completed: u32,
    /// Attempts, those that failed included.
    pub attempts: u32,
    /// Attempts that failed.
    pub failures: u32,
    /// The last attempt that failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_failure: Option<LastFailure>,
}

/// The last failed attempt of an activity.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LastFailure {
    /// The position of its event in the history.
    pub position: Position,
    /// When it was recorded.
    pub at: DateTime<Utc>,
    /// The number of the attempt, from 1.
    pub attempt: u32,
    /// What kind of failure it was.
    pub kind: FailureClass,
    /// What failed.
    pub message: String,
    /// When the next attempt is due; absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_at: Option<DateTime<Utc>>,
}

/// What kind of failure an attempt ended with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FailureClass {
    /// It may pass.
    Retryable,
    /// It will not pass.
    Terminal,
    /// The run was cancelled.
    Cancelled,
    /// The machine failed: a full disk, no descriptors.
    Machine,
    /// A limit of a provider was reached.
    RateLimited,
}

/// A check that Longhaul ran, and its evidence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CheckRun {
    /// The position of its event in the history.
    pub position: Position,
    /// When it was recorded.
    pub at: DateTime<Utc>,
    /// The step of the feature: `gates`, `merging`.
    pub step: String,
    /// Whether it passed.
    pub passed: bool,
    /// The command, how it ended, and what it printed.
    #[serde(flatten)]
    pub evidence: Evidence,
}

/// A segment of a history: how it began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Segment {
    /// The position of its first event in the history.
    pub position: Position,
    /// When it was recorded.
    pub at: DateTime<Utc>,
    /// Why it began.
    pub cause: SegmentCause,
}

/// Why a segment of a history began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SegmentCause {
    /// The run was started.
    Started,
    /// The run went on with its state as input, to keep its history short.
    ContinuedAsNew,
    /// The run was over, and was started again.
    Restarted,
}

/// When the gates of a feature were last run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tested {
    /// When it was recorded.
    pub at: DateTime<Utc>,
    /// As the feature list says it.
    pub text: String,
}

/// A commit that would land.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// The commit.
    pub commit: String,
    /// The time that is written into it.
    pub at: String,
    /// Whether it is on the target already: the work was done again and changed nothing.
    pub is_old: bool,
}

/// What a history amounts to.
#[derive(Debug, Clone, Default)]
pub struct RunView {
    /// How many events it has.
    pub events: u64,
    /// When the last one was recorded.
    pub last_at: Option<DateTime<Utc>>,
    /// What the run of a feature published last.
    pub progress: FeatureProgress,
    /// What is under way or waited for.
    pub waits: Option<Waits>,
    /// Its activities, by name.
    pub activities: BTreeMap<String, ActivityCounts>,
    /// The checks that ran, in their order.
    pub checks: Vec<CheckRun>,
    /// The sessions, in the order of their start.
    pub sessions: Vec<Session>,
    /// The segments of the history.
    pub segments: Vec<Segment>,
    /// What people asked of it.
    pub audit: Vec<AuditEntry>,
    /// What the last segment of a feature came to.
    pub outcome: Option<FeatureOutcome>,
    /// Whether the run is over.
    pub is_over: bool,
    /// When the gates were last run.
    pub tested: Option<Tested>,
    /// The same, of gates of which a commit on the target tells; a landing that changed nothing
    /// left none.
    pub landed: Option<Tested>,
    /// The commit that would land.
    pub candidate: Option<Candidate>,
    /// Whether the next checks are those of the baseline.
    pub expects_baseline: bool,
    /// How many of the first events are copies from the run that this one was forked from.
    copied: u64,
    /// Calls whose start is recorded, and whose end is not.
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

    /// Takes the next event in.
    pub fn apply(&mut self, event: &Event) {
        (self.events, self.last_at) = (event.position + 1, Some(event.at));
        self.audit.extend(AuditEntry::of(event));
        if let Some(session) = self.sessions.last_mut()
            && !announces_session(event)
        {
            session.touch(event.at);
        }
        match &event.kind {
            EventKind::RunStarted { cause, labels, .. } => self.begin(event, cause, labels),
            EventKind::StatusPublished { key, value, .. } if key == FeatureProgress::KEY => {
                self.progress = value.read().unwrap_or_default();
            }
            EventKind::ActivityStarted { slot, name, input, attempt } => {
                self.waits = Some(Waits::Call { name: name.clone(), since: event.at });
                self.activity(name).attempts += 1;
                self.open.insert(*slot);
                if name == RunSession::NAME {
                    self.begin_session(event, *slot, *attempt, input);
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
                if name == RunSession::NAME {
                    self.begin_session(event, *slot, *attempt, input);
                }
                self.complete(event, name, input, output);
            }
            EventKind::MessageAwaited { deadline, .. } => {
                self.waits = Some(Waits::Message { deadline: *deadline });
            }
            EventKind::TimerStarted { fire_at, .. } => {
                self.waits = Some(Waits::Timer { at: *fire_at });
            }
            EventKind::MessageReceived { .. } | EventKind::TimerFired { .. } => self.waits = None,
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

    /// The session under way, or the last one of this segment.
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

    /// The last check that failed, unless the same command passed later.
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
        self.progress.step.clear();
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

    /// Counts an attempt that ended, if its start was not recorded and counted.
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
        let retry =
            |at| Waits::Retry { name: name.to_owned(), attempt, failure: failure.clone(), at };
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
        if name == RunSession::NAME
            && let Some(session) = self.sessions.last_mut()
        {
            session.fail(event.at, &failure.message, retry_at.is_some());
        }
    }

    fn begin_session(&mut self, event: &Event, slot: Slot, attempt: u32, input: &Payload) {
        let Ok(input) = input.read::<SessionInput>() else { return };
        let segment = self.segments.len();
        if let Some(last) = self.sessions.last_mut() {
            if (last.number, last.record.segment) == (input.number, segment) {
                last.attempts = last.attempts.max(attempt);
                (last.state, last.failure, last.ended_at) = (SessionState::Working, None, None);
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
            call: slot.to_string(),
            reason: input.reason,
            attempts: attempt,
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
            RunSession::NAME => {
                let Some(session) = self.sessions.last_mut() else { return };
                match output.read::<SessionReport>() {
                    Ok(report) => session.end(event.at, &report),
                    // A person said that the session happened: there is no report.
                    Err(_) => session.interrupt(),
                }
            }
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
            self.tested = Some(Tested { at: event.at, text });
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

    /// Whether a commit is the merged result that would land.
    pub fn is_candidate(&self, commit: &str) -> bool {
        self.candidate.as_ref().is_some_and(|candidate| candidate.commit == commit)
    }

    fn take_checks(&mut self, event: &Event, evidence: impl IntoIterator<Item = Evidence>) {
        let step = &self.progress.step;
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
        // The commit has a time of the test in its feature list. The list of the user must not
        // differ from it.
        let Some(candidate) =
            self.candidate.take().filter(|candidate| candidate.commit == input.commit)
        else {
            return;
        };
        let tested = Tested { at: event.at, text: candidate.at };
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

/// Whether an event is about the next session, not about the one before it.
fn announces_session(event: &Event) -> bool {
    match &event.kind {
        EventKind::ActivityStarted { name, .. } => name == RunSession::NAME,
        EventKind::StatusPublished { .. } => true,
        _ => false,
    }
}
