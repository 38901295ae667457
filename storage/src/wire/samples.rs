//! Samples of every kind of event and message, and every variant of their fields.

use chrono::{DateTime, Utc};
use longhaul_engine::event::{Cause, UnknownEffect};
use longhaul_engine::{
    CommandDigest, Event, EventKind, Failure, Message, MessageBody, Outcome, Payload, Pruned,
    RequestedBy, RunId, Slot, Status, Summary,
};

const SLOT: Slot = Slot { command: 3, call: 1, calls: 2 };

/// A history with all of them.
pub(crate) fn history() -> (RunId, Vec<Event>) {
    let kinds = beginnings()
        .into_iter()
        .chain(activities())
        .chain(commands())
        .chain(messages())
        .chain(ends());
    let event =
        |(position, kind)| Event { position, at: at(1_000_000 * position.cast_signed()), kind };
    (run("shop/login/1"), (0..).zip(kinds).map(event).collect())
}

/// The history of one event.
pub(crate) fn single(kind: EventKind) -> (RunId, Vec<Event>) {
    (run("r"), vec![Event { position: 0, at: at(0), kind }])
}

pub(crate) fn json(text: &str) -> Payload {
    Payload::from_bytes(text.as_bytes())
}

pub(crate) fn at(micros: i64) -> DateTime<Utc> {
    DateTime::from_timestamp_micros(1_767_225_600_000_000 + micros).unwrap()
}

fn run(id: &str) -> RunId {
    RunId::new(id).unwrap()
}

fn request() -> RequestedBy {
    RequestedBy { by: "ann".into(), why: "\"lunch\"\n– again".into() }
}

fn unknown() -> UnknownEffect {
    UnknownEffect { activity: "land".into(), attempt: 2, reason: "no trace".into() }
}

fn beginnings() -> Vec<EventKind> {
    let started = |cause, parent| EventKind::RunStarted {
        workflow: "feature".into(),
        input: json(r#"{"claimed":false,"name":"Grüße"}"#),
        parent,
        labels: [("team".to_owned(), "a".to_owned()), ("x".to_owned(), String::new())].into(),
        cause,
    };
    vec![
        started(Cause::Started, None),
        started(Cause::ContinuedAsNew, Some(run("shop"))),
        started(Cause::Restarted, None),
    ]
}

fn activities() -> Vec<EventKind> {
    let name = "land".to_owned();
    let input = json(r#"{"tip":"1f"}"#);
    let failed = |failure, retry_at| EventKind::ActivityFailed {
        slot: SLOT,
        name: name.clone(),
        input: input.clone(),
        attempt: 1,
        failure,
        retry_at,
    };
    vec![
        EventKind::ActivityStarted {
            slot: SLOT,
            name: name.clone(),
            input: input.clone(),
            attempt: 1,
        },
        EventKind::ActivityProgressed { slot: SLOT, details: json("0.50") },
        failed(Failure::retryable("network"), Some(at(5))),
        failed(Failure::terminal("the tip has moved").with_code("stale"), None),
        failed(Failure::cancelled(), None),
        failed(Failure::machine("disk full"), Some(at(6))),
        failed(Failure::rate_limited(at(9), "limit"), Some(at(9))),
        EventKind::RunParked { slot: SLOT, effect: unknown() },
        EventKind::RunReconciled { slot: SLOT, happened: true, request: request() },
        EventKind::ActivityCompleted {
            slot: SLOT,
            name,
            input,
            attempt: 70_000,
            output: json("[ 1, 2 ]"),
        },
    ]
}

fn commands() -> Vec<EventKind> {
    vec![
        EventKind::ChildStarted {
            command: 4,
            run: run("p/f"),
            workflow: "feature".into(),
            input: json("1"),
        },
        EventKind::MessageAwaited { command: 5, deadline: Some(at(1)) },
        EventKind::MessageAwaited { command: 6, deadline: None },
        EventKind::MessageReceived { command: 6, message: None },
        EventKind::SignalSent {
            command: 7,
            to: run("p"),
            name: "ready".into(),
            payload: json("\"a\\n\\u00e4\""),
        },
        EventKind::CancelSent { command: 7, to: run("p/a"), request: request() },
        EventKind::TimerStarted { command: 8, fire_at: at(2) },
        EventKind::TimerFired { command: 8 },
        EventKind::TimeRead { command: 9 },
        EventKind::UuidDrawn {
            command: 10,
            uuid: uuid::Uuid::from_u128(0x0123_4567_89ab_cdef_0123_4567_89ab_cdef),
        },
        EventKind::VersionMarked { command: 11, change: "gates".into(), version: 2 },
        EventKind::StatusPublished { command: 12, key: "plan".into(), value: json("null") },
        EventKind::RunPaused(request()),
        EventKind::RunResumed(RequestedBy::default()),
    ]
}

/// Messages of every kind.
pub(crate) fn bodies() -> Vec<MessageBody> {
    let ended = |outcome| MessageBody::ChildEnded { run: run("p/f"), outcome };
    vec![
        MessageBody::Signal {
            name: "go".into(),
            payload: json(" {\n  \"a\": 1\n}\n"),
            from: Some(run("p")),
            request: None,
        },
        MessageBody::signal("go", json("1")),
        MessageBody::signal_by("go", json("1"), request()),
        ended(Outcome::Completed(json("null"))),
        ended(Outcome::Failed(Failure::terminal("broken"))),
        ended(Outcome::Cancelled),
        MessageBody::Pause(request()),
        MessageBody::Resume(request()),
        MessageBody::Cancel(request()),
        MessageBody::Terminate(request()),
        MessageBody::Reconcile { happened: true, output: json("5"), request: request() },
        MessageBody::Reconcile { happened: false, output: json("null"), request: request() },
    ]
}

fn messages() -> Vec<EventKind> {
    let received = |(seq, body)| EventKind::MessageReceived {
        command: 13,
        message: Some(Message { seq, at: at(4), body }),
    };
    (1 << 32..).zip(bodies()).map(received).collect()
}

/// Summaries with every status.
pub(crate) fn summaries() -> Vec<Summary> {
    let statuses = [
        Status::Running,
        Status::Waiting { until: Some(at(3)), machine: None },
        Status::Waiting { until: None, machine: Some("disk full".into()) },
        Status::Paused(request()),
        Status::Parked(unknown()),
        Status::Completed,
        Status::Failed("broken".into()),
        Status::Cancelled,
    ];
    let summary = |(origin, status)| Summary {
        workflow: "project".into(),
        parent: Some(run("p")),
        labels: [("team".to_owned(), "a".to_owned())].into(),
        status,
        origin,
        started_at: at(0),
        ended_at: Some(at(1)),
        pruned: (origin == 300).then_some(Pruned { events: 300, at: at(2) }),
    };
    (300..).zip(statuses).map(summary).collect()
}

fn ends() -> Vec<EventKind> {
    vec![
        EventKind::CancelDelivered {
            command: 14,
            digest: CommandDigest([9; 32]),
            request: request(),
        },
        EventKind::RunCompleted { output: json("3") },
        EventKind::RunFailed { failure: Failure::terminal("broken") },
        EventKind::RunCancelled,
        EventKind::RunTerminated(request()),
    ]
}
