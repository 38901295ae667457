//! Text for people about histories: each event as one or more entries. Activities are described in
//! [`activity`].

mod activity;
mod block;
mod wait;

use longhaul_engine::event::{Cause, Message};
use longhaul_engine::{
    Event, EventKind, Failure, FailureKind, MessageBody, Outcome, Payload, RequestedBy, RunId,
};
use serde::Serialize;

use crate::contracts::{SessionInput, SessionReport};
use crate::feature::{
    Approval, FORKED_FROM, FeatureOutcome, FeatureProgress, MergeLease, MergeRequest, Note,
    PassRefuted, SessionEnded, SessionPermit, SessionRequest, SessionResult,
};
use crate::project::signal::{HALT, RELOAD, SYNC};
use crate::project::{FeatureView, ProjectSummary};
use crate::projection::RunView;
use crate::session::{SessionStart, SessionWorkflow};
use crate::text;

pub use crate::text::{clock, counted, short};

/// The most characters shown of a payload with an unknown shape.
const PREVIEW: usize = 80;

/// The kind of an entry, as named in `history.json` and `claude-progress.txt`. Scripts read the
/// names, so they are frozen from the first release on. A [`Kind::Detail`] is shown in the history
/// of its run only.
#[expect(missing_docs, reason = "the names say it")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    Detail,
    FeatureStarted,
    WorktreeOpened,
    SetupPassed,
    SetupFailed,
    BaselinePassed,
    BaselineFailed,
    SessionStarted,
    SessionEnded,
    Handoff,
    SessionFailed,
    Checkpoint,
    Tampering,
    GatesPassed,
    GatesFailed,
    Merged,
    MergeConflict,
    Landed,
    WorktreeClosed,
    AttemptFailed,
    FeatureCompleted,
    FeatureBlocked,
    FeatureCancelled,
    Paused,
    Resumed,
    Parked,
    Reconciled,
    ListProblem,
}

impl Kind {
    /// Whether it is shown in `claude-progress.txt`, not only in `history.json`.
    pub fn is_for_progress_file(self) -> bool {
        !matches!(
            self,
            Self::Detail
                | Self::FeatureStarted
                | Self::WorktreeOpened
                | Self::SetupPassed
                | Self::BaselinePassed
                | Self::Merged
                | Self::Landed
                | Self::WorktreeClosed
                | Self::AttemptFailed
                | Self::ListProblem
        )
    }
}

/// An entry: the text about an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The kind of the entry.
    pub kind: Kind,
    /// The headline, in one line.
    pub text: String,
    /// Further paragraphs; may be empty.
    pub details: String,
    /// Its commit.
    pub commit: Option<String>,
    /// The step that it completes.
    pub step: Option<String>,
}

impl Entry {
    /// An entry without details.
    pub fn new(kind: Kind, text: impl Into<String>) -> Self {
        Self { kind, text: text.into(), details: String::new(), commit: None, step: None }
    }

    /// The line and the details.
    pub fn in_full(&self) -> String {
        text::paragraphs(&[&self.text, &self.details])
    }

    fn details(self, paragraphs: &[&str]) -> Self {
        Self { details: text::paragraphs(paragraphs), ..self }
    }

    fn on(self, commit: &str) -> Self {
        Self { commit: Some(commit.to_owned()), ..self }
    }

    fn completes(self, step: impl Into<String>) -> Self {
        Self { step: Some(step.into()), ..self }
    }
}

/// The entries of an event. `before` is the view of the run before it. A reading of the clock and
/// other bookkeeping of replay has none.
pub fn entries(event: &Event, before: &RunView) -> Vec<Entry> {
    if let EventKind::ActivityCompleted { name, input, output, attempt, .. } = &event.kind {
        let mut entries = activity::completed(name, input, output, before);
        if let Some(first) = entries.first_mut() {
            first.text += &nth(*attempt);
        }
        return entries;
    }
    let is_bookkeeping = matches!(
        event.kind,
        EventKind::TimeRead { .. }
            | EventKind::UuidDrawn { .. }
            | EventKind::VersionMarked { .. }
            | EventKind::MessageReceived { message: None, .. }
    );
    if is_bookkeeping { Vec::new() } else { vec![entry(&event.kind, before)] }
}

fn entry(kind: &EventKind, before: &RunView) -> Entry {
    let entry = |kind, text: String| Entry::new(kind, text);
    match kind {
        EventKind::RunStarted { .. } => started(kind),
        EventKind::ActivityStarted { name, attempt, input, .. } => {
            let is_again = activity::is_session(name) && *attempt > 1;
            let kind = if is_again { Kind::SessionStarted } else { Kind::Detail };
            entry(kind, format!("{} begins{}", activity::task(name, input), nth(*attempt)))
        }
        EventKind::ActivityFailed { name, input, attempt, failure, retry_at, .. } => {
            let kind =
                if activity::is_session(name) { Kind::SessionFailed } else { Kind::AttemptFailed };
            let again = retry_at.map_or_else(
                || "not tried again".into(),
                |at| format!("tried again at {}", clock(at)),
            );
            let what = activity::task(name, input);
            entry(kind, format!("{what} failed{}: {}; {again}", nth(*attempt), failed(failure)))
        }
        EventKind::ChildStarted { workflow, input, .. } if workflow == SessionWorkflow::NAME => {
            let begins = |start: SessionStart| {
                let SessionInput { number, reason, .. } = start.session;
                let name = activity::session_name(number, reason);
                entry(Kind::SessionStarted, format!("{name} begins"))
            };
            input.read().map_or_else(|_| entry(Kind::Detail, detail(kind)), begins)
        }
        EventKind::MessageReceived {
            message: Some(Message { body: MessageBody::ChildEnded { run, outcome }, .. }),
            ..
        } => ended(run, outcome, before).unwrap_or_else(|| entry(Kind::Detail, detail(kind))),
        EventKind::RunPaused(request) => entry(Kind::Paused, format!("paused{}", by(request))),
        EventKind::RunResumed(request) => entry(Kind::Resumed, format!("resumed{}", by(request))),
        EventKind::RunParked { effect, .. } => entry(Kind::Parked, format!("parked: {effect}")),
        EventKind::RunReconciled { happened, request, .. } => {
            let what = if *happened { "the effect happened" } else { "the effect did not happen" };
            let why =
                if request.why.is_empty() { String::new() } else { format!(": {}", request.why) };
            entry(Kind::Reconciled, format!("reconciled{}: {what}{why}", by_name(request)))
        }
        EventKind::RunCompleted { output } => completed(output),
        EventKind::RunFailed { failure } => {
            entry(Kind::FeatureBlocked, format!("over: failed: {}", failure.message))
        }
        EventKind::RunCancelled => {
            let request =
                before.ended_by().map(|entry| by(&entry.action.request())).unwrap_or_default();
            entry(Kind::FeatureCancelled, format!("over: cancelled{request}"))
        }
        EventKind::RunTerminated(request) => {
            entry(Kind::FeatureCancelled, format!("over: terminated{}", by(request)))
        }
        other => entry(Kind::Detail, detail(other)),
    }
}

/// The end of a session of the run.
fn ended(run: &RunId, outcome: &Outcome, before: &RunView) -> Option<Entry> {
    let session = before.sessions.iter().find(|session| session.run == run.as_str())?;
    let name = activity::session_name(session.number, session.reason);
    Some(match outcome {
        Outcome::Completed(report) => {
            activity::session(session.number, session.reason, &report.read().ok()?)
        }
        Outcome::Failed(failure) => {
            Entry::new(Kind::SessionFailed, format!("{name} failed: {}", failure.message))
        }
        Outcome::Cancelled => Entry::new(Kind::SessionFailed, format!("{name} was cancelled")),
    })
}

/// Events shown only in the history of a run.
fn detail(kind: &EventKind) -> String {
    match kind {
        EventKind::ActivityProgressed { slot, details } => {
            format!("call {slot} progressed: {}", details.preview(PREVIEW))
        }
        EventKind::ChildStarted { run, workflow, .. } => {
            format!("started the run {run} of {workflow}")
        }
        EventKind::MessageAwaited { deadline: None, .. } => "waits for a message".into(),
        EventKind::MessageAwaited { deadline: Some(at), .. } => {
            format!("waits for a message until {}", clock(*at))
        }
        EventKind::MessageReceived { message: None, .. } => "no message".into(),
        EventKind::MessageReceived { message: Some(message), .. } => received(message),
        EventKind::SignalSent { to, name, payload, .. } => {
            format!("sent to {to}: {}", signal(name, payload))
        }
        EventKind::CancelSent { to, request, .. } => {
            format!("asked {to} to cancel: {}", request.why)
        }
        EventKind::TimerStarted { fire_at, .. } => format!("waits until {}", clock(*fire_at)),
        EventKind::TimerFired { .. } => "the timer fired".into(),
        EventKind::TimeRead { .. } => "read the clock".into(),
        EventKind::UuidDrawn { uuid, .. } => format!("drew the id {uuid}"),
        EventKind::VersionMarked { change, version, .. } => {
            format!("follows version {version} of {change}")
        }
        EventKind::StatusPublished { key, value, .. } => match value.read::<FeatureProgress>() {
            Ok(FeatureProgress { stage: Some(stage), .. }) if key == FeatureProgress::KEY => {
                format!("step: {stage}")
            }
            _ => published(key, value),
        },
        EventKind::CancelDelivered { request, .. } => format!("cancelled{}", by(request)),
        other => other.name().to_owned(),
    }
}

/// A new value of a run. The values of projects and features are shown by `status`.
fn published(key: &str, value: &Payload) -> String {
    if let Ok(ProjectSummary { features, passed, .. }) = value.read::<ProjectSummary>()
        && key == ProjectSummary::KEY
    {
        return format!("{passed} of {} passed", counted(features, "feature"));
    }
    if let Some(feature) = key.strip_prefix(FeatureView::PREFIX)
        && let Ok(view) = value.read::<FeatureView>()
    {
        return format!("{feature}: {}", view.status);
    }
    format!("set {}: {}", key.replace('_', " "), value.preview(PREVIEW))
}

fn started(kind: &EventKind) -> Entry {
    let EventKind::RunStarted { workflow, parent, cause, labels, .. } = kind else {
        return Entry::new(Kind::Detail, kind.name());
    };
    let parent = parent.as_ref().map(|parent| format!(" by {parent}")).unwrap_or_default();
    let origin =
        labels.get(FORKED_FROM).map(|origin| format!(", forked from {origin}")).unwrap_or_default();
    match cause {
        Cause::Started => {
            Entry::new(Kind::FeatureStarted, format!("started: {workflow}{parent}{origin}"))
        }
        Cause::ContinuedAsNew => Entry::new(Kind::Detail, format!("continued as new: {workflow}")),
        Cause::Restarted => {
            Entry::new(Kind::FeatureStarted, format!("started again: {workflow}{origin}"))
        }
    }
}

fn completed(output: &Payload) -> Entry {
    let text = format!("over: {}", outcome(output));
    match output.read::<FeatureOutcome>() {
        Ok(FeatureOutcome::Passed { commit, progress, files, .. }) => {
            let sessions = counted(progress.sessions as usize, "session");
            let details = format!("{sessions}, {} changed", counted(files.len(), "file"));
            Entry::new(Kind::FeatureCompleted, text)
                .details(&[&details])
                .on(&commit)
                .completes("feature")
        }
        Ok(FeatureOutcome::Blocked { block, .. }) => {
            let output = text::last_lines(block.output());
            Entry::new(Kind::FeatureBlocked, text).details(&[&output])
        }
        Err(_) => Entry::new(Kind::Detail, text),
    }
}

/// The outcome of a run.
fn outcome(output: &Payload) -> String {
    match output.read::<FeatureOutcome>() {
        Ok(FeatureOutcome::Passed { commit, waits_on_next: None, .. }) => {
            format!("passed, as {}", short(&commit))
        }
        Ok(FeatureOutcome::Passed { commit, waits_on_next: Some(reason), .. }) => {
            format!("passed, as {}; waits on longhaul/next: {reason}", short(&commit))
        }
        Ok(FeatureOutcome::Blocked { block, .. }) => format!("blocked: {block}"),
        Err(_) => match output.read::<SessionReport>() {
            Ok(report) => report.ending.text().to_owned(),
            Err(_) => format!("completed: {}", output.preview(PREVIEW)),
        },
    }
}

fn received(message: &Message) -> String {
    match &message.body {
        MessageBody::Signal { name, payload, from, request } => {
            let from = from.as_ref().map(|run| format!(" from {run}")).unwrap_or_default();
            let signed =
                request.as_ref().map(|request| format!(",{}", by(request))).unwrap_or_default();
            format!("received{from}: {}{signed}", signal(name, payload))
        }
        MessageBody::ChildEnded { run, outcome: ended } => match ended {
            Outcome::Completed(output) => format!("{run} is over: {}", outcome(output)),
            Outcome::Failed(failure) => format!("{run} is over: failed: {}", failure.message),
            Outcome::Cancelled => format!("{run} is over: cancelled"),
        },
        MessageBody::Pause(request) => format!("received: pause{}", by(request)),
        MessageBody::Resume(request) => format!("received: resume{}", by(request)),
        MessageBody::Cancel(request) => format!("received: cancel{}", by(request)),
        MessageBody::Terminate(request) => format!("received: terminate{}", by(request)),
        MessageBody::Reconcile { request, .. } => format!("received: reconcile{}", by(request)),
    }
}

/// The content of a signal; of an unknown one, its payload.
fn signal(name: &str, payload: &Payload) -> String {
    known_signal(name, payload).unwrap_or_else(|| format!("{name} {}", payload.preview(PREVIEW)))
}

fn known_signal(name: &str, payload: &Payload) -> Option<String> {
    Some(match name {
        MergeRequest::SIGNAL => {
            format!("{} is ready to merge", payload.read::<MergeRequest>().ok()?.feature)
        }
        MergeLease::GRANTED => match payload.read::<MergeLease>().ok()?.regression.len() {
            0 => "it may merge now".into(),
            count => format!("it may merge now, {}", counted(count, "more check")),
        },
        PassRefuted::SIGNAL => {
            let PassRefuted { feature, check, .. } = payload.read().ok()?;
            format!("the check `{check}` of {feature} fails on the target itself")
        }
        MergeLease::RELEASED => {
            format!("{} gives its turn to merge back", payload.read::<String>().ok()?)
        }
        SessionRequest::SIGNAL => {
            format!(
                "asks for a session ({})",
                payload.read::<SessionRequest>().ok()?.reason.as_str()
            )
        }
        SessionPermit::SIGNAL => match payload.read::<SessionPermit>().ok()? {
            SessionPermit::Granted { forgiven: 0, .. } => "a session may begin".into(),
            SessionPermit::Granted { forgiven, .. } => {
                format!(
                    "a session may begin; {forgiven} that failed in an outage of the agent do not count"
                )
            }
            SessionPermit::Rebase => "start from the target as it is now".into(),
            SessionPermit::Refused { reason } => format!("no session: {reason}"),
        },
        SessionEnded::SIGNAL => match payload.read::<SessionEnded>().ok()?.result {
            SessionResult::Worked { .. } => "the session is over".into(),
            SessionResult::Unused => "the session is not needed".into(),
            SessionResult::Failed { ending, .. } => {
                format!("the session failed and changed nothing: {ending}")
            }
        },
        SYNC | RELOAD => "read the list again".into(),
        HALT => format!("halt{}", by(&payload.read::<RequestedBy>().ok()?)),
        Note::SIGNAL => format!("a note for the agent: {}", payload.read::<Note>().ok()?.0),
        Approval::SIGNAL => {
            let Approval { approved, by: name, why, .. } = payload.read().ok()?;
            let word = if approved { "approved" } else { "denied" };
            format!("{word}{}", by(&RequestedBy { by: name, why }))
        }
        _ => return None,
    })
}

fn failed(failure: &Failure) -> String {
    match failure.kind {
        FailureKind::Machine => format!("the machine cannot do it now: {}", failure.message),
        FailureKind::RateLimited { until } => {
            format!("limited until {}: {}", clock(until), failure.message)
        }
        _ => failure.message.clone(),
    }
}

/// Requester and reason: ` by ann: enough`; empty if neither is known.
pub fn by(request: &RequestedBy) -> String {
    let why = if request.why.is_empty() { String::new() } else { format!(": {}", request.why) };
    format!("{}{why}", by_name(request))
}

fn by_name(request: &RequestedBy) -> String {
    if request.by.is_empty() { String::new() } else { format!(" by {}", request.by) }
}

fn nth(attempt: u32) -> String {
    if attempt > 1 { format!(" (attempt {attempt})") } else { String::new() }
}
