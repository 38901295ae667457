//! The frozen shapes of version 1: what the bodies of records say, byte for byte.
//!
//! Never change a type here, not even the order of its variants: stored logs would be read wrongly. A new shape is a
//! new module with a new format byte, and a conversion from this one.

use serde::{Deserialize, Serialize};

/// Microseconds since 1970 in UTC.
pub(crate) type Time = i64;

/// Where the bytes of a payload are.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum Stored {
    Inline(#[serde(with = "serde_bytes")] Vec<u8>),
    Blob(BlobRef),
}

/// The name of a blob, and how long its content is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BlobRef {
    pub(crate) hash: [u8; 32],
    pub(crate) len: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Event {
    pub(crate) at: Time,
    pub(crate) kind: EventKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) enum Cause {
    Started,
    ContinuedAsNew,
    Restarted,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Slot {
    pub(crate) command: u32,
    pub(crate) call: u16,
    pub(crate) calls: u16,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Request {
    pub(crate) by: String,
    pub(crate) why: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum FailureKind {
    Retryable,
    Terminal,
    Cancelled,
    Machine,
    RateLimited { until: Time },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Failure {
    pub(crate) kind: FailureKind,
    pub(crate) message: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum EventKind {
    RunStarted { workflow: String, input: Stored, parent: Option<String>, labels: Vec<(String, String)>, cause: Cause },
    ActivityStarted { slot: Slot, name: String, input: Stored, attempt: u32 },
    ActivityProgressed { slot: Slot, details: Stored },
    ActivityFailed { slot: Slot, name: String, input: Stored, attempt: u32, failure: Failure, retry_at: Option<Time> },
    ActivityCompleted { slot: Slot, name: String, input: Stored, attempt: u32, output: Stored },
    ChildStarted { command: u32, run: String, workflow: String, input: Stored },
    MessageAwaited { command: u32, deadline: Option<Time> },
    MessageReceived { command: u32, message: Option<NumberedMessage> },
    SignalSent { command: u32, to: String, name: String, payload: Stored },
    TimerStarted { command: u32, fire_at: Time },
    TimerFired { command: u32 },
    TimeRead { command: u32 },
    UuidDrawn { command: u32, uuid: [u8; 16] },
    VersionMarked { command: u32, change: String, version: u32 },
    StatusPublished { command: u32, key: String, value: Stored },
    CancelDelivered { command: u32, digest: [u8; 32], request: Request },
    RunPaused(Request),
    RunResumed(Request),
    RunParked { slot: Slot, reason: String },
    RunReconciled { slot: Slot, landed: bool, request: Request },
    RunCompleted { output: Stored },
    RunFailed { failure: Failure },
    RunCancelled,
    RunTerminated(Request),
}

/// A message inside an event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct NumberedMessage {
    pub(crate) seq: u64,
    pub(crate) message: Message,
}

/// A message in a mailbox; its number is in the key.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Message {
    pub(crate) at: Time,
    pub(crate) body: MessageBody,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum MessageBody {
    Signal { name: String, payload: Stored, from: Option<String>, request: Option<Request> },
    ChildEnded { run: String, outcome: Outcome },
    Pause(Request),
    Resume(Request),
    Cancel(Request),
    Terminate(Request),
    Reconcile { landed: bool, output: Option<Stored>, request: Request },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum Outcome {
    Completed(Stored),
    Failed(Failure),
    Cancelled,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Summary {
    pub(crate) workflow: String,
    pub(crate) parent: Option<String>,
    pub(crate) labels: Vec<(String, String)>,
    pub(crate) status: Status,
    pub(crate) origin: u64,
    pub(crate) started_at: Time,
    pub(crate) ended_at: Option<Time>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum Status {
    Running,
    Waiting { until: Option<Time>, machine: Option<String> },
    Paused(Request),
    Parked(String),
    Completed,
    Failed(String),
    Cancelled,
}

/// A process that has opened the log for writing; its epoch is in the key.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Owner {
    pub(crate) pid: u32,
    pub(crate) at: Time,
}

/// The version of the keyspace as a whole.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Format {
    pub(crate) version: u32,
}
