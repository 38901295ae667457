//! Golden bytes: one sample of every kind of record and every variant, as version 1 writes them for ever.
//!
//! To add lines for a new format, run the test with `LONGHAUL_BLESS=1`; to change a line is to break stored logs.

use std::fmt::Write;

use chrono::{DateTime, Utc};
use longhaul_engine::event::Cause;
use longhaul_engine::{
    CommandDigest, Event, EventKind, Failure, Message, MessageBody, Outcome, Payload, Request, RunId, Slot,
};
use longhaul_engine::{Status, Summary};

use super::pack::{self, Packer};
use super::unpack::{self, Unpacker};
use super::v1;
use crate::blob::Source;
use crate::record::{self, Body};

fn at(micros: i64) -> DateTime<Utc> {
    DateTime::from_timestamp_micros(1_700_000_000_000_000 + micros).unwrap()
}

fn run(id: &str) -> RunId {
    RunId::new(id).unwrap()
}

fn json(text: &str) -> Payload {
    Payload::from_bytes(text.as_bytes().to_vec())
}

fn request() -> Request {
    Request { by: "ann".into(), why: "budget".into() }
}

const SLOT: Slot = Slot { command: 3, call: 1, calls: 2 };

fn activities() -> Vec<EventKind> {
    let (name, input) = ("git.commit".to_owned(), json(r#"{"a":1}"#));
    let failed = |failure, retry_at| EventKind::ActivityFailed {
        slot: SLOT,
        name: name.clone(),
        input: input.clone(),
        attempt: 1,
        failure,
        retry_at,
    };
    vec![
        EventKind::ActivityStarted { slot: SLOT, name: name.clone(), input: input.clone(), attempt: 1 },
        EventKind::ActivityProgressed { slot: SLOT, details: json("0.5") },
        failed(Failure::retryable("network"), Some(at(5))),
        failed(Failure::terminal("no"), None),
        failed(Failure::cancelled(), None),
        failed(Failure::machine("disk full"), Some(at(6))),
        failed(Failure::rate_limited(at(9), "limit"), Some(at(9))),
        EventKind::ActivityCompleted { slot: SLOT, name, input, attempt: 70_000, output: json("[]") },
    ]
}

fn commands() -> Vec<EventKind> {
    vec![
        EventKind::ChildStarted { command: 0, run: run("p/f"), workflow: "feature".into(), input: json("1") },
        EventKind::MessageAwaited { command: 1, deadline: Some(at(1)) },
        EventKind::MessageAwaited { command: 1, deadline: None },
        EventKind::MessageReceived { command: 2, message: None },
        EventKind::SignalSent { command: 3, to: run("p"), name: "go".into(), payload: json("2") },
        EventKind::TimerStarted { command: 4, fire_at: at(2) },
        EventKind::TimerFired { command: 4 },
        EventKind::TimeRead { command: 5 },
        EventKind::UuidDrawn { command: 6, uuid: uuid::Uuid::from_u128(0x0123_4567_89ab_cdef_0123_4567_89ab_cdef) },
        EventKind::VersionMarked { command: 7, change: "gates".into(), version: 2 },
        EventKind::StatusPublished { command: 8, key: "plan".into(), value: json("null") },
        EventKind::CancelDelivered { command: 9, digest: CommandDigest([9; 32]), request: request() },
    ]
}

fn others() -> Vec<EventKind> {
    let started = |cause, parent| EventKind::RunStarted {
        workflow: "project".into(),
        input: json("{}"),
        parent,
        labels: [("team".to_owned(), "a".to_owned()), ("x".to_owned(), String::new())].into(),
        cause,
    };
    vec![
        started(Cause::Started, None),
        started(Cause::ContinuedAsNew, Some(run("p"))),
        started(Cause::Restarted, None),
        EventKind::RunPaused(request()),
        EventKind::RunResumed(request()),
        EventKind::RunParked { slot: SLOT, reason: "unknown".into() },
        EventKind::RunReconciled { slot: SLOT, landed: true, request: request() },
        EventKind::RunCompleted { output: json("3") },
        EventKind::RunFailed { failure: Failure::terminal("broken") },
        EventKind::RunCancelled,
        EventKind::RunTerminated(request()),
    ]
}

fn bodies() -> Vec<MessageBody> {
    let ended = |outcome| MessageBody::ChildEnded { run: run("p/f"), outcome };
    vec![
        MessageBody::Signal { name: "go".into(), payload: json("1"), from: Some(run("p")), request: None },
        MessageBody::signal("go", json("1")),
        MessageBody::Signal { name: "go".into(), payload: json("1"), from: None, request: Some(request()) },
        ended(Outcome::Completed(json("4"))),
        ended(Outcome::Failed(Failure::terminal("broken"))),
        ended(Outcome::Cancelled),
        MessageBody::Pause(request()),
        MessageBody::Resume(request()),
        MessageBody::Cancel(request()),
        MessageBody::Terminate(request()),
        MessageBody::Reconcile { landed: true, output: Some(json("5")), request: request() },
        MessageBody::Reconcile { landed: false, output: None, request: request() },
    ]
}

fn statuses() -> Vec<Status> {
    vec![
        Status::Running,
        Status::Waiting { until: Some(at(3)), machine: None },
        Status::Waiting { until: Some(at(3)), machine: Some("disk full".into()) },
        Status::Waiting { until: None, machine: None },
        Status::Paused(request()),
        Status::Parked("unknown".into()),
        Status::Completed,
        Status::Failed("broken".into()),
        Status::Cancelled,
    ]
}

fn events() -> Vec<Event> {
    let received = bodies().into_iter().map(|body| EventKind::MessageReceived {
        command: 2,
        message: Some(Message { seq: 1 << 32, at: at(4), body }),
    });
    let kinds = others().into_iter().chain(activities()).chain(commands()).chain(received);
    kinds.map(|kind| Event { position: 7, at: at(0), kind }).collect()
}

fn summaries() -> Vec<Summary> {
    let summary = |status| Summary {
        workflow: "project".into(),
        parent: Some(run("p")),
        labels: [("team".to_owned(), "a".to_owned())].into(),
        status,
        origin: 300,
        started_at: at(0),
        ended_at: Some(at(1)),
    };
    statuses().into_iter().map(summary).collect()
}

/// Encodes under a fixed key, checks that it decodes to the same, and gives the line of the golden file.
fn line<B: Body + PartialEq + std::fmt::Debug>(label: &str, body: &B) -> String {
    let value = record::encode(body, &mut Packer::new()).unwrap().seal(b"key");
    assert_eq!(&record::decode::<B>(b"key", &value, Source::Nowhere).unwrap(), body);
    let mut line = format!("{label} ");
    for byte in value {
        write!(line, "{byte:02x}").unwrap();
    }
    line
}

fn lines() -> Vec<String> {
    let mut packer = Packer::new();
    let unpacker = Unpacker(Source::Nowhere);
    let mut lines = Vec::new();
    for event in events() {
        let stored = packer.event(&event);
        assert_eq!(unpacker.event(7, stored.clone()).unwrap(), event);
        lines.push(line(event.kind.name(), &stored));
    }
    for summary in summaries() {
        let stored = pack::summary(&summary);
        assert_eq!(unpack::summary(stored.clone()).unwrap(), summary);
        lines.push(line("Summary", &stored));
    }
    for body in bodies() {
        let stored = packer.message(at(0), &body);
        assert_eq!(unpacker.message(9, stored.clone()).unwrap(), Message { seq: 9, at: at(0), body });
        lines.push(line("Message", &stored));
    }
    lines.push(line("Published", &packer.payload(&json("7"))));
    lines.push(line("PublishedBlob", &packer.payload(&json(&"7".repeat(5000)))));
    lines.push(line("Owner", &v1::Owner { pid: 4242, at: 1 }));
    lines.push(line("Format", &v1::Format { version: 1 }));
    let long = v1::Stored::Inline(vec![b'8'; 20_000]);
    let spilled = record::encode(&long, &mut packer).unwrap().seal(b"key");
    lines.push(spilled.iter().fold("Spilled ".to_owned(), |line, byte| format!("{line}{byte:02x}")));
    lines
}

#[test]
fn records_are_written_as_they_always_were() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/golden/v1.txt");
    let written = lines().join("\n") + "\n";
    if std::env::var_os("LONGHAUL_BLESS").is_some() {
        std::fs::write(path, &written).unwrap();
    }
    let golden = std::fs::read_to_string(path).unwrap();
    for (written, golden) in written.lines().zip(golden.lines()) {
        assert_eq!(written, golden);
    }
    assert_eq!(written.lines().count(), golden.lines().count());
}
