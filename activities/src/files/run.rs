//! One run of a feature, folded from its events into what the files tell of it.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use longhaul_engine::event::Cause;
use longhaul_engine::{Activity, Event, EventKind, Failure, Payload, RunId};
use longhaul_workflows::backlog::FeatureId;
use longhaul_workflows::contracts::{RunChecks, RunSession, RunSetup, SessionInput};
use longhaul_workflows::feature::{COPIED, FORKED_FROM, FeatureOutcome, FeatureProgress};
use serde::de::DeserializeOwned;

use super::happening::{Happening, Key, Kind};
use super::session::{Session, SessionStatus, Step};
use super::text::iso;
use super::words;

/// A run of a feature.
#[derive(Debug)]
pub(super) struct FeatureRun {
    pub(super) id: RunId,
    pub(super) feature: FeatureId,
    /// `login-2`: what its sessions are called after.
    label: String,
    /// How often it was started.
    pub(super) life: u32,
    pub(super) progress: FeatureProgress,
    pub(super) sessions: Vec<Session>,
    /// Why it was blocked, each time.
    pub(super) blocked: Vec<String>,
    pub(super) is_over: bool,
    pub(super) tested: Option<Tested>,
    /// When the gates were run of which a commit on the target tells; a landing that changed nothing left none.
    pub(super) landed: Option<Tested>,
    /// The commit that would land, and the time that is written into it.
    pub(super) candidate: Option<Candidate>,
    /// Whether the next checks are those of the baseline.
    pub(super) expects_baseline: bool,
    cancel: String,
    /// How many of its first events are copies, told of by the run that they were copied from.
    copied: u64,
    /// What happened since it was asked last.
    pub(super) told: Vec<Happening>,
}

/// When the gates of a feature were last run.
#[derive(Debug, Clone)]
pub(super) struct Tested {
    /// When the log heard of it.
    pub(super) at: DateTime<Utc>,
    /// As the feature list says it.
    pub(super) text: String,
}

/// A commit that would land.
#[derive(Debug)]
pub(super) struct Candidate {
    pub(super) commit: String,
    /// The time that is written into it.
    pub(super) at: String,
    /// Whether it is on the target already: the work was done again, and nothing came of it.
    pub(super) is_old: bool,
}

impl FeatureRun {
    /// The run, if the id is that of a run of a feature: `<project>/<feature>/<n>`.
    pub(super) fn of(project: &RunId, run: &RunId) -> Option<Self> {
        let rest = run.as_str().strip_prefix(project.as_str())?.strip_prefix('/')?;
        let (feature, nth) = rest.rsplit_once('/').filter(|(_, nth)| !nth.is_empty())?;
        let feature = FeatureId::new(feature).ok()?;
        Some(Self {
            id: run.clone(),
            label: format!("{feature}-{nth}"),
            feature,
            life: 0,
            progress: FeatureProgress::default(),
            sessions: Vec::new(),
            blocked: Vec::new(),
            is_over: false,
            tested: None,
            landed: None,
            candidate: None,
            expects_baseline: false,
            cancel: String::new(),
            copied: 0,
            told: Vec::new(),
        })
    }

    /// Takes the next event in.
    pub(super) fn apply(&mut self, event: &Event) {
        if (1..self.copied).contains(&event.position) {
            return self.take_copy(event);
        }
        if let Some(session) = self.sessions.last_mut()
            && !announces_a_session(event)
        {
            session.touch(event.at);
        }
        match &event.kind {
            EventKind::RunStarted { cause, labels, .. } => self.begin(event, cause, labels),
            EventKind::ActivityStarted { name, input, attempt, .. } if name == RunSession::NAME => {
                self.begin_session(event, input, *attempt);
            }
            EventKind::ActivityCompleted { name, input, output, .. } => self.complete(event, name, input, output),
            EventKind::ActivityFailed { name, failure, retry_at, .. } => self.fail(event, name, failure, *retry_at),
            EventKind::StatusPublished { key, value, .. } if key == FeatureProgress::KEY => {
                self.take_progress(event, value);
            }
            EventKind::RunPaused(request) => self.tell(event, Kind::Paused, words::asked("Paused", request)),
            EventKind::RunResumed(request) => {
                self.tell(event, Kind::Resumed, words::asked("Goes on, as asked", request));
            }
            EventKind::RunParked { effect, .. } => self.park(event, &effect.to_string()),
            EventKind::RunReconciled { landed, request, .. } => {
                let what = if *landed { "Said to have happened" } else { "Said not to have happened" };
                self.tell(event, Kind::Reconciled, words::asked(what, request));
            }
            EventKind::CancelDelivered { request, .. } => self.cancel = words::asked("Cancelled", request),
            EventKind::RunCompleted { output } => self.end(event, output),
            EventKind::RunFailed { failure } => self.block(event, failure.message.clone()),
            EventKind::RunCancelled => {
                let text = if self.cancel.is_empty() { "Cancelled".to_owned() } else { self.cancel.clone() };
                self.tell(event, Kind::FeatureCancelled, text);
                self.close();
            }
            EventKind::RunTerminated(request) => {
                self.tell(event, Kind::FeatureCancelled, words::asked("Terminated", request));
                self.close();
            }
            _ => {}
        }
    }

    /// What a run knows from the one that it was forked from.
    fn take_copy(&mut self, event: &Event) {
        match &event.kind {
            EventKind::StatusPublished { key, value, .. } if key == FeatureProgress::KEY => {
                self.take_progress(event, value);
            }
            EventKind::ActivityCompleted { name, .. } if name == RunSetup::NAME => self.expects_baseline = true,
            EventKind::ActivityCompleted { name, .. } if name == RunChecks::NAME => self.expects_baseline = false,
            _ => {}
        }
    }

    fn begin(&mut self, event: &Event, cause: &Cause, labels: &BTreeMap<String, String>) {
        if *cause == Cause::ContinuedAsNew {
            return;
        }
        self.life += 1;
        self.is_over = false;
        self.candidate = None;
        self.expects_baseline = false;
        self.copied = labels.get(COPIED).and_then(|copied| copied.parse().ok()).unwrap_or(0);
        let what = match labels.get(FORKED_FROM) {
            Some(origin) => format!("goes on from {origin}"),
            None if *cause == Cause::Restarted => "is started again".to_owned(),
            None => "is started".to_owned(),
        };
        self.tell(event, Kind::FeatureStarted, format!("The run {} {what}.", self.id));
    }

    fn take_progress(&mut self, event: &Event, value: &Payload) {
        self.progress = self.read(event, value).unwrap_or_default();
        if let Some(session) = self.sessions.last_mut() {
            session.written = None;
        }
    }

    fn begin_session(&mut self, event: &Event, input: &Payload, attempt: u32) {
        let Some(input) = self.read::<SessionInput>(event, input) else { return };
        let life = self.life.max(1);
        match self.sessions.last_mut() {
            Some(session) if (session.number, session.life) == (input.number, life) => {
                session.status = SessionStatus::Active;
                session.touch(event.at);
            }
            last => {
                if let Some(last) = last {
                    last.close();
                }
                let again = if life > 1 { format!("-r{life}") } else { String::new() };
                let id = format!("{}{again}-s{}", self.label, input.number);
                self.sessions.push(Session::begin(id, input.number, life, event.at, event.position));
            }
        }
        self.tell(event, Kind::SessionStarted, words::session_started(&input, attempt));
    }

    fn fail(&mut self, event: &Event, name: &str, failure: &Failure, retry_at: Option<DateTime<Utc>>) {
        let text = words::retried(&failure.message, retry_at.map(iso));
        if name != RunSession::NAME {
            return self.tell(event, Kind::AttemptFailed, format!("{name}: {text}"));
        }
        if let Some(session) = self.sessions.last_mut() {
            session.status = if retry_at.is_some() { SessionStatus::Interrupted } else { SessionStatus::Error };
        }
        self.tell(event, Kind::SessionFailed, text);
    }

    fn park(&mut self, event: &Event, reason: &str) {
        if let Some(session) = self.sessions.last_mut().filter(|session| session.status == SessionStatus::Active) {
            session.status = SessionStatus::Interrupted;
        }
        self.tell(event, Kind::Parked, reason.to_owned());
    }

    fn end(&mut self, event: &Event, output: &Payload) {
        match self.read(event, output) {
            Some(FeatureOutcome::Passed { commit, waits_on_next, progress, files, .. }) => {
                let text = words::completed(&progress, &files, waits_on_next.as_deref());
                self.tell(event, Kind::FeatureCompleted, text);
                self.with_commit(&commit);
                self.with_step("feature");
                self.progress = progress;
                self.close();
            }
            Some(FeatureOutcome::Blocked { reason, progress }) => {
                self.progress = progress;
                self.block(event, reason);
            }
            None => self.close(),
        }
    }

    fn block(&mut self, event: &Event, reason: String) {
        self.tell(event, Kind::FeatureBlocked, reason.clone());
        self.blocked.push(reason);
        self.close();
    }

    fn close(&mut self) {
        self.is_over = true;
        if let Some(session) = self.sessions.last_mut() {
            session.close();
        }
    }

    /// Tells that something happened.
    pub(super) fn tell(&mut self, event: &Event, kind: Kind, text: String) {
        let before = self.told.last().filter(|told| told.key.position == event.position);
        let nth = before.map_or(0, |told| told.key.nth + 1);
        let session = self.sessions.last().filter(|session| session.life == self.life.max(1));
        self.told.push(Happening {
            key: Key { at: event.at, run: self.id.clone(), position: event.position, nth },
            kind,
            feature: Some(self.feature.clone()),
            session: session.map_or(&self.label, |session| &session.id).clone(),
            text,
            commit: None,
            step: None,
        });
    }

    /// Adds a commit to what was told last.
    pub(super) fn with_commit(&mut self, commit: &str) {
        if let Some(told) = self.told.last_mut() {
            told.commit = Some(commit.to_owned());
        }
    }

    /// Says that what was told last completed a step.
    pub(super) fn with_step(&mut self, step: &str) {
        if let Some(told) = self.told.last_mut() {
            told.step = Some(step.to_owned());
        }
    }

    /// Notes that the session has come past a step.
    pub(super) fn pass(&mut self, step: Step) {
        self.with_step(step.name());
        if let Some(session) = self.sessions.last_mut() {
            session.complete(step);
        }
    }

    /// Reads a payload. One that cannot be read costs what it would have told, not the files.
    pub(super) fn read<T: DeserializeOwned>(&self, event: &Event, payload: &Payload) -> Option<T> {
        read(&self.id, event, payload)
    }
}

/// Whether an event is about what comes next, not about the session so far.
fn announces_a_session(event: &Event) -> bool {
    match &event.kind {
        EventKind::ActivityStarted { name, .. } => name == RunSession::NAME,
        EventKind::StatusPublished { .. } => true,
        _ => false,
    }
}

/// Reads a payload of an event; says so if it is not what is expected.
pub(super) fn read<T: DeserializeOwned>(run: &RunId, event: &Event, payload: &Payload) -> Option<T> {
    payload
        .read()
        .inspect_err(|error| {
            let (position, kind) = (event.position, event.kind.name());
            tracing::warn!(%run, position, kind, %error, "the files for people leave out an event");
        })
        .ok()
}
