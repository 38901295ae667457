//! Runs, events and commits to test with.

use chrono::{DateTime, Utc};
use longhaul_engine::event::Cause;
use longhaul_engine::store::{Commit, Creation, Delivery};
use longhaul_engine::{Event, EventKind, MessageBody, Payload, Position, RunId, Summary};

/// One test per concern and store.
macro_rules! conformance {
    ($($concern:ident),+ $(,)?) => {
        mod sled {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $concern() {
                let directory = tempfile::tempdir().unwrap();
                let store = super::SledStore::open(directory.path()).unwrap();
                super::$concern(super::Arc::new(store)).await;
            })+
        }
        mod memory {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $concern() {
                super::$concern(super::Arc::new(super::MemoryStore::new())).await;
            })+
        }
    };
}

/// Parses a run id.
pub(crate) fn run(id: &str) -> RunId {
    RunId::new(id).unwrap()
}

/// A fixed time, with digits below the microsecond, which stores drop.
pub(crate) fn now() -> DateTime<Utc> {
    DateTime::from_timestamp(1_700_000_000, 123_456_000).unwrap()
}

/// The first event of a run.
pub(crate) fn started() -> Event {
    let kind = EventKind::RunStarted {
        workflow: "test".into(),
        input: Payload::of("input"),
        parent: None,
        labels: [("kind".to_owned(), "test".to_owned())].into(),
        cause: Cause::Started,
    };
    Event { position: 0, at: now(), kind }
}

/// An event with a payload.
pub(crate) fn published(position: Position, value: &Payload) -> Event {
    let kind = EventKind::StatusPublished { command: 1, key: "value".into(), value: value.clone() };
    Event { position, at: now(), kind }
}

/// The last event of a run.
pub(crate) fn completed(position: Position) -> Event {
    Event { position, at: now(), kind: EventKind::RunCompleted { output: Payload::null() } }
}

/// The summary of a list of events that begins with a start.
pub(crate) fn summary_of(events: &[Event]) -> Summary {
    let (first, rest) = events.split_first().unwrap();
    let mut summary = Summary::begin(first).unwrap();
    for event in rest {
        summary.apply(event);
    }
    summary
}

/// The commit that starts a run.
pub(crate) fn start(id: &str) -> Commit {
    let events = vec![started()];
    Commit { summary: Some(summary_of(&events)), ..Commit::of(run(id), events) }
}

/// The commit that ends a run of one event.
pub(crate) fn end(id: &str) -> Commit {
    let summary = summary_of(&[started(), completed(1)]);
    Commit { summary: Some(summary), ..Commit::of(run(id), vec![completed(1)]) }
}

/// A commit of one event.
pub(crate) fn append(id: &str, position: Position, value: &Payload) -> Commit {
    Commit::of(run(id), vec![published(position, value)])
}

/// The same, with a published value that matches the event.
pub(crate) fn publish(id: &str, position: Position, value: &Payload) -> Commit {
    Commit { published: vec![("value".into(), Some(value.clone()))], ..append(id, position, value) }
}

/// A creation.
pub(crate) fn creation(id: &str) -> Creation {
    Creation { run: run(id), event: started(), summary: summary_of(&[started()]) }
}

/// A signal to deliver.
pub(crate) fn signal(to: &str, name: &str) -> Delivery {
    let body = MessageBody::signal(name, Payload::of(name));
    Delivery { to: run(to), at: now(), body }
}

/// A payload large enough for a blob, different for each seed.
pub(crate) fn large(seed: u64, length: usize) -> Payload {
    let words: String = (0..)
        .map(|at: u64| format!("{:x}", (at ^ seed).wrapping_mul(0x9e37_79b9_7f4a_7c15)))
        .scan(0, |total, word| {
            *total += word.len();
            (*total < length + 16).then_some(word)
        })
        .collect();
    Payload::of(&words)
}

/// The values of the events of a run, after the first.
pub(crate) fn values(events: &[Event]) -> Vec<Payload> {
    let value = |event: &Event| match &event.kind {
        EventKind::StatusPublished { value, .. } => Some(value.clone()),
        _ => None,
    };
    events.iter().filter_map(value).collect()
}
