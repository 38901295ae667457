//! The commands of [`Context`](crate::context::Context) as data: their fields, the parsing of their
//! recorded events, and their digests.
//!
//! A command has its own answer type, so an impossible answer cannot be expressed. Two things are
//! not compared, so that a later release may change them: durations, of which a history holds the
//! end time, and the filter of a wait in which no message came. A received message must pass the
//! filter.

mod calls;

use std::time::Duration;

use chrono::{DateTime, Utc};
use uuid::Uuid;

use crate::context::{Child, Filter, Received};
use crate::describe;
use crate::event::{CommandDigest, Event, EventKind, RequestedBy};
use crate::id::RunId;
use crate::payload::Payload;

pub(crate) use calls::{CallState, Calls};

/// A command of a workflow.
pub(crate) trait Command: Send + Sync + Sized {
    /// The name that enters the digest.
    const NAME: &'static str;
    /// The answer of a complete record.
    type Answer: Send;
    /// The state of a command with a partial record.
    type Progress: Send;

    /// Reads the recorded events of this command; `Err` is the first event that does not belong to
    /// it.
    fn read(&self, events: Vec<Event>) -> Result<Record<Self>, Box<Event>>;

    /// Whether a complete record can end with a cancellation in place of this answer.
    fn gives_way_to_cancel(_answer: &Self::Answer) -> bool {
        false
    }

    /// Feeds every field that identifies the command into the digest.
    fn encode(&self, encoder: &mut Encoder);

    /// The command in full, for people.
    fn text(&self) -> String;

    /// The part of the command that an event should have answered, for people.
    fn text_beside(&self, _event: &EventKind) -> String {
        self.text()
    }

    /// Identifies the command among all others.
    fn digest(&self) -> CommandDigest {
        let mut encoder = Encoder(blake3::Hasher::new());
        encoder.field(Self::NAME.as_bytes());
        self.encode(&mut encoder);
        CommandDigest(*encoder.0.finalize().as_bytes())
    }
}

/// The record of a command in a history.
pub(crate) enum Record<C: Command> {
    /// It has begun.
    UnderWay(C::Progress),
    /// It has its answer.
    Complete(C::Answer),
}

/// The canonical encoding of a command: each field is prefixed with its length, so that no two
/// commands share an encoding.
pub(crate) struct Encoder(blake3::Hasher);

impl Encoder {
    fn filter(&mut self, filter: &Filter) {
        match filter {
            Filter::Any => {
                self.field(b"any");
            }
            Filter::Signals(names) => {
                self.field(b"signals");
                for name in names {
                    self.field(name.as_bytes());
                }
            }
            Filter::Children => {
                self.field(b"children");
            }
        }
    }

    fn field(&mut self, bytes: &[u8]) -> &mut Self {
        self.0.update(&(bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
        self
    }
}

/// Starts a child run.
#[derive(Debug, Clone)]
pub(crate) struct StartChild(pub(crate) Child);

/// Waits for a message.
#[derive(Debug, Clone)]
pub(crate) struct Receive {
    pub(crate) filter: Filter,
    pub(crate) timeout: Option<Duration>,
}

/// Takes a message if there is one.
#[derive(Debug, Clone)]
pub(crate) struct TryReceive {
    pub(crate) filter: Filter,
}

/// Signals another run.
#[derive(Debug, Clone)]
pub(crate) struct SendSignal {
    pub(crate) to: RunId,
    pub(crate) name: String,
    pub(crate) payload: Payload,
}

/// Requests the cancellation of another run.
#[derive(Debug, Clone)]
pub(crate) struct SendCancel {
    pub(crate) to: RunId,
    pub(crate) request: RequestedBy,
}

/// Waits for a time.
#[derive(Debug, Clone)]
pub(crate) struct Sleep(pub(crate) Duration);

/// Reads the clock.
#[derive(Debug, Clone)]
pub(crate) struct ReadClock;

/// Draws a unique id.
#[derive(Debug, Clone)]
pub(crate) struct DrawUuid;

/// Publishes a value. Replay compares only the key: no decision of this run depends on the value,
/// and a later release may publish more.
#[derive(Debug, Clone)]
pub(crate) struct Publish {
    pub(crate) key: String,
    pub(crate) value: Payload,
}

/// Marks a change of the code. The version is the answer, so it is not compared.
#[derive(Debug, Clone)]
pub(crate) struct MarkVersion {
    pub(crate) change: String,
    pub(crate) latest: u32,
}

impl Command for StartChild {
    const NAME: &'static str = "start";
    type Answer = ();
    type Progress = ();

    fn read(&self, events: Vec<Event>) -> Result<Record<Self>, Box<Event>> {
        let child = &self.0;
        single(events, |event| match &event.kind {
            EventKind::ChildStarted { run, workflow, input, .. } => {
                (child.run == *run && child.workflow == workflow && child.input == *input)
                    .then_some(())
            }
            _ => None,
        })
    }

    fn encode(&self, encoder: &mut Encoder) {
        let Child { run, workflow, input, labels: _ } = &self.0;
        encoder.field(run.as_str().as_bytes()).field(workflow.as_bytes()).field(input.as_bytes());
    }

    fn text(&self) -> String {
        describe::start(&self.0.run, self.0.workflow, &self.0.input)
    }
}

impl Command for Receive {
    const NAME: &'static str = "receive";
    type Answer = Option<Received>;
    type Progress = Option<DateTime<Utc>>;

    fn read(&self, events: Vec<Event>) -> Result<Record<Self>, Box<Event>> {
        begun_then(
            events,
            |kind| match kind {
                EventKind::MessageAwaited { deadline, .. } => Some(*deadline),
                _ => None,
            },
            |kind| received(kind, &self.filter),
        )
    }

    fn encode(&self, encoder: &mut Encoder) {
        encoder.filter(&self.filter);
    }

    fn text(&self) -> String {
        describe::RECEIVE.into()
    }
}

impl Command for TryReceive {
    const NAME: &'static str = "try_receive";
    type Answer = Option<Received>;
    type Progress = ();

    fn read(&self, events: Vec<Event>) -> Result<Record<Self>, Box<Event>> {
        single(events, |event| received(&event.kind, &self.filter))
    }

    fn encode(&self, encoder: &mut Encoder) {
        encoder.filter(&self.filter);
    }

    fn text(&self) -> String {
        "look for a message".into()
    }
}

impl Command for SendSignal {
    const NAME: &'static str = "send";
    type Answer = ();
    type Progress = ();

    fn read(&self, events: Vec<Event>) -> Result<Record<Self>, Box<Event>> {
        single(events, |event| match &event.kind {
            EventKind::SignalSent { to, name, payload, .. } => {
                (self.to == *to && self.name == *name && self.payload == *payload).then_some(())
            }
            _ => None,
        })
    }

    fn encode(&self, encoder: &mut Encoder) {
        encoder
            .field(self.to.as_str().as_bytes())
            .field(self.name.as_bytes())
            .field(self.payload.as_bytes());
    }

    fn text(&self) -> String {
        describe::send(&self.to, &self.name, &self.payload)
    }
}

impl Command for SendCancel {
    const NAME: &'static str = "cancel";
    type Answer = ();
    type Progress = ();

    fn read(&self, events: Vec<Event>) -> Result<Record<Self>, Box<Event>> {
        single(events, |event| match &event.kind {
            EventKind::CancelSent { to, request, .. } => {
                (self.to == *to && self.request == *request).then_some(())
            }
            _ => None,
        })
    }

    fn encode(&self, encoder: &mut Encoder) {
        let RequestedBy { by, why } = &self.request;
        encoder.field(self.to.as_str().as_bytes()).field(by.as_bytes()).field(why.as_bytes());
    }

    fn text(&self) -> String {
        describe::cancel(&self.to, &self.request)
    }
}

impl Command for Sleep {
    const NAME: &'static str = "sleep";
    type Answer = ();
    type Progress = DateTime<Utc>;

    fn read(&self, events: Vec<Event>) -> Result<Record<Self>, Box<Event>> {
        begun_then(
            events,
            |kind| match kind {
                EventKind::TimerStarted { fire_at, .. } => Some(*fire_at),
                _ => None,
            },
            |kind| matches!(kind, EventKind::TimerFired { .. }).then_some(()),
        )
    }

    fn encode(&self, _encoder: &mut Encoder) {}

    fn text(&self) -> String {
        format!("sleep {:?}", self.0)
    }
}

impl Command for ReadClock {
    const NAME: &'static str = "now";
    type Answer = DateTime<Utc>;
    type Progress = ();

    fn read(&self, events: Vec<Event>) -> Result<Record<Self>, Box<Event>> {
        single(events, |event| matches!(event.kind, EventKind::TimeRead { .. }).then_some(event.at))
    }

    fn encode(&self, _encoder: &mut Encoder) {}

    fn text(&self) -> String {
        describe::READ_CLOCK.into()
    }
}

impl Command for DrawUuid {
    const NAME: &'static str = "uuid";
    type Answer = Uuid;
    type Progress = ();

    fn read(&self, events: Vec<Event>) -> Result<Record<Self>, Box<Event>> {
        single(events, |event| match event.kind {
            EventKind::UuidDrawn { uuid, .. } => Some(uuid),
            _ => None,
        })
    }

    fn encode(&self, _encoder: &mut Encoder) {}

    fn text(&self) -> String {
        describe::DRAW_ID.into()
    }
}

impl Command for Publish {
    const NAME: &'static str = "publish";
    type Answer = ();
    type Progress = ();

    fn read(&self, events: Vec<Event>) -> Result<Record<Self>, Box<Event>> {
        single(events, |event| match &event.kind {
            EventKind::StatusPublished { key, .. } => (self.key == *key).then_some(()),
            _ => None,
        })
    }

    fn encode(&self, encoder: &mut Encoder) {
        encoder.field(self.key.as_bytes());
    }

    fn text(&self) -> String {
        describe::publish(&self.key, &self.value)
    }
}

impl Command for MarkVersion {
    const NAME: &'static str = "version";
    type Answer = u32;
    type Progress = ();

    fn read(&self, events: Vec<Event>) -> Result<Record<Self>, Box<Event>> {
        single(events, |event| match &event.kind {
            EventKind::VersionMarked { change, version, .. } => {
                (self.change == *change).then_some(*version)
            }
            _ => None,
        })
    }

    fn encode(&self, encoder: &mut Encoder) {
        encoder.field(self.change.as_bytes());
    }

    fn text(&self) -> String {
        describe::version(&self.change)
    }
}

/// A received message, or none. `None`: another event, or a message that the filter does not take.
fn received(kind: &EventKind, filter: &Filter) -> Option<<Receive as Command>::Answer> {
    match kind {
        EventKind::MessageReceived { message: None, .. } => Some(None),
        EventKind::MessageReceived { message: Some(message), .. } => {
            Received::of(&message.body).filter(|received| filter.takes(received)).map(Some)
        }
        _ => None,
    }
}

/// The record of a command that is one event.
fn single<C: Command>(
    events: Vec<Event>,
    answer: impl FnOnce(&Event) -> Option<C::Answer>,
) -> Result<Record<C>, Box<Event>> {
    let mut events = events.into_iter();
    // A group always has at least one event.
    let event = events.next().expect("a recorded command has an event");
    match (answer(&event), events.next()) {
        (Some(answer), None) => Ok(Record::Complete(answer)),
        (Some(_), Some(second)) => Err(second.into()),
        (None, _) => Err(event.into()),
    }
}

/// The record of a command that may wait: an optional event when the wait begins, and one with the
/// answer.
fn begun_then<C: Command>(
    events: Vec<Event>,
    begun: impl Fn(&EventKind) -> Option<C::Progress>,
    answer: impl Fn(&EventKind) -> Option<C::Answer>,
) -> Result<Record<C>, Box<Event>> {
    let mut record = None;
    for event in events {
        record = Some(match (&record, begun(&event.kind), answer(&event.kind)) {
            (None | Some(Record::UnderWay(_)), Some(progress), _) => Record::UnderWay(progress),
            (None | Some(Record::UnderWay(_)), _, Some(answer)) => Record::Complete(answer),
            _ => return Err(event.into()),
        });
    }
    Ok(record.expect("a recorded command has an event"))
}
