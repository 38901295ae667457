//! Events in plain words, one line each.

use longhaul_engine::event::{Cause, Message};
use longhaul_engine::{EventKind, Failure, FailureKind, MessageBody, Outcome, Payload, RequestedBy};
use longhaul_workflows::feature::{
    Approval, FeatureProgress, Note, Ready, SessionEnded, SessionPermit, SessionRequest, SessionResult, Turn,
};
use longhaul_workflows::project::signal::{HALT, RELOAD, SYNC};

use super::report;

/// The most letters that a payload of no known shape is shown with.
const PREVIEW: usize = 80;

/// What happened, in one line.
pub(super) fn of(kind: &EventKind) -> String {
    match kind {
        EventKind::RunStarted { workflow, parent, cause, .. } => started(workflow, parent.as_ref(), cause),
        EventKind::ActivityStarted { name, attempt, input, .. } => {
            format!("{} begins{}", report::asked(name, input), nth(*attempt))
        }
        EventKind::ActivityProgressed { slot, details } => {
            format!("call {slot} is further: {}", details.preview(PREVIEW))
        }
        EventKind::ActivityFailed { name, input, attempt, failure, retry_at, .. } => {
            let again = retry_at.map_or_else(|| "not tried again".into(), |at| format!("tried again at {}", clock(at)));
            format!("{} failed{}: {}; {again}", report::asked(name, input), nth(*attempt), failed(failure))
        }
        EventKind::ActivityCompleted { name, input, output, attempt, .. } => {
            format!("{}{}", report::given(name, input, output), nth(*attempt))
        }
        EventKind::ChildStarted { run, workflow, .. } => format!("started the run {run} of {workflow}"),
        EventKind::MessageAwaited { deadline: None, .. } => "waits for a message".into(),
        EventKind::MessageAwaited { deadline: Some(at), .. } => format!("waits for a message until {}", clock(*at)),
        EventKind::MessageReceived { message: None, .. } => "there was no message".into(),
        EventKind::MessageReceived { message: Some(message), .. } => received(message),
        EventKind::SignalSent { to, name, payload, .. } => format!("told {to}: {}", signal(name, payload)),
        EventKind::TimerStarted { fire_at, .. } => format!("waits until {}", clock(*fire_at)),
        EventKind::TimerFired { .. } => "the time has come".into(),
        EventKind::TimeRead { .. } => "read the clock".into(),
        EventKind::UuidDrawn { uuid, .. } => format!("drew the id {uuid}"),
        EventKind::VersionMarked { change, version, .. } => format!("follows version {version} of {change}"),
        EventKind::StatusPublished { key, value, .. } => said(key, value),
        EventKind::CancelDelivered { request, .. } => format!("told to end {}", by(request)),
        EventKind::RunPaused(request) => format!("paused {}", by(request)),
        EventKind::RunResumed(request) => format!("resumed {}", by(request)),
        EventKind::RunParked { effect, .. } => format!("parked: {effect}"),
        EventKind::RunReconciled { landed: true, request, .. } => {
            format!("settled: it happened, says {}", who(request))
        }
        EventKind::RunReconciled { request, .. } => format!("settled: it did not happen, says {}", who(request)),
        EventKind::RunCompleted { output } => format!("over: {}", report::outcome(output)),
        EventKind::RunFailed { failure } => format!("over: failed: {}", failure.message),
        EventKind::RunCancelled => "over: cancelled".into(),
        EventKind::RunTerminated(request) => format!("over: terminated {}", by(request)),
    }
}

fn started(workflow: &str, parent: Option<&longhaul_engine::RunId>, cause: &Cause) -> String {
    let by = parent.map(|parent| format!(" by {parent}")).unwrap_or_default();
    match cause {
        Cause::Started => format!("started: {workflow}{by}"),
        Cause::ContinuedAsNew => format!("goes on as new: {workflow}"),
        Cause::Restarted => format!("started again: {workflow}"),
    }
}

fn received(message: &Message) -> String {
    match &message.body {
        MessageBody::Signal { name, payload, from, request } => {
            let from = from.as_ref().map(|run| format!(" from {run}")).unwrap_or_default();
            let signed = request.as_ref().map(|request| format!(", {}", by(request))).unwrap_or_default();
            format!("heard{from}: {}{signed}", signal(name, payload))
        }
        MessageBody::ChildEnded { run, outcome } => match outcome {
            Outcome::Completed(output) => format!("{run} is over: {}", report::outcome(output)),
            Outcome::Failed(failure) => format!("{run} is over: failed: {}", failure.message),
            Outcome::Cancelled => format!("{run} is over: cancelled"),
        },
        MessageBody::Pause(request) => format!("to pause {}", by(request)),
        MessageBody::Resume(request) => format!("to go on {}", by(request)),
        MessageBody::Cancel(request) => format!("to end {}", by(request)),
        MessageBody::Terminate(request) => format!("to end at once {}", by(request)),
        MessageBody::Reconcile { landed, request, .. } => {
            format!("an effect {}, says {}", if *landed { "happened" } else { "did not happen" }, who(request))
        }
    }
}

/// What a signal says; one that is not known, as it is.
fn signal(name: &str, payload: &Payload) -> String {
    let known = match name {
        Ready::SIGNAL => payload.read::<Ready>().ok().map(|ready| format!("{} is ready to merge", ready.feature)),
        Turn::GIVEN => payload.read::<Turn>().ok().map(|turn| match turn.regression.len() {
            0 => "it may merge now".into(),
            1 => "it may merge now, 1 more check".into(),
            count => format!("it may merge now, {count} more checks"),
        }),
        Turn::GIVEN_BACK => {
            payload.read::<String>().ok().map(|feature| format!("{feature} gives its turn to merge back"))
        }
        SessionRequest::SIGNAL => payload
            .read::<SessionRequest>()
            .ok()
            .map(|request| format!("asks for a session ({})", request.reason.as_str())),
        SessionPermit::SIGNAL => payload.read::<SessionPermit>().ok().map(|permit| match permit {
            SessionPermit::Granted { forgiven: 0, .. } => "a session may begin".into(),
            SessionPermit::Granted { forgiven, .. } => {
                format!("a session may begin; {forgiven} that failed count for nothing, the agent was out of order")
            }
            SessionPermit::Rebase => "start from the target as it is now".into(),
            SessionPermit::Refused { reason } => format!("no session: {reason}"),
        }),
        SessionEnded::SIGNAL => payload.read::<SessionEnded>().ok().map(|ended| match ended.result {
            SessionResult::Worked { .. } => "the session is over".into(),
            SessionResult::Unused => "the session is not needed".into(),
            SessionResult::Failed { ending, .. } => format!("the session failed and changed nothing: {ending}"),
        }),
        SYNC | RELOAD => Some("read the list again".into()),
        HALT => payload.read::<RequestedBy>().ok().map(|request| format!("stop, {}", by(&request))),
        Note::SIGNAL => payload.read::<Note>().ok().map(|note| match note {
            Note::Text(text) => format!("a note for the agent: {text}"),
            Note::Signed { text, by: name, why } => {
                format!("a note for the agent: {text}, {}", by(&RequestedBy { by: name, why }))
            }
        }),
        Approval::SIGNAL => payload.read::<Approval>().ok().map(|said| {
            let word = if said.approved { "approved" } else { "denied" };
            format!("{word} {}", by(&RequestedBy { by: said.by, why: said.why }))
        }),
        _ => None,
    };
    known.unwrap_or_else(|| format!("{name} {}", payload.preview(PREVIEW)))
}

fn said(key: &str, value: &Payload) -> String {
    if key == FeatureProgress::KEY
        && let Ok(progress) = value.read::<FeatureProgress>()
    {
        return format!("step: {}", progress.step);
    }
    format!("says {key}: {}", value.preview(PREVIEW))
}

fn failed(failure: &Failure) -> String {
    match failure.kind {
        FailureKind::Machine => format!("the machine cannot do it now: {}", failure.message),
        FailureKind::RateLimited { until } => format!("limited until {}: {}", clock(until), failure.message),
        _ => failure.message.clone(),
    }
}

/// Who asked, and why.
pub(super) fn by(request: &RequestedBy) -> String {
    format!("by {}", who(request))
}

fn who(request: &RequestedBy) -> String {
    let name = if request.by.is_empty() { "somebody" } else { &request.by };
    if request.why.is_empty() { name.to_owned() } else { format!("{name}: {}", request.why) }
}

fn nth(attempt: u32) -> String {
    if attempt > 1 { format!(" (attempt {attempt})") } else { String::new() }
}

/// A time, to the second.
pub(super) fn clock(at: chrono::DateTime<chrono::Utc>) -> String {
    at.format("%Y-%m-%d %H:%M:%S UTC").to_string()
}
