//! The types of version 1, in records (bincode) and in files (JSON).
//!
//! From the first release on, a type here never changes, not even the order of its variants,
//! because stored logs would be misread. A new shape is a new module with a new format byte and a
//! conversion from this one. Small types of the engine ([`RunId`], [`Slot`], [`RequestedBy`],
//! [`Failure`]) are used directly; the golden bytes fix their format too.

use std::collections::BTreeMap;

use chrono::{DateTime, SecondsFormat, Utc};
use longhaul_engine::event::{Cause, CommandDigest, RequestedBy, UnknownEffect};
use longhaul_engine::{Failure, RunId, Slot};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use uuid::Uuid;

/// A time in whole microseconds: a number since 1970 in a record, RFC 3339 with six digits in a
/// file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Time(pub(crate) DateTime<Utc>);

impl From<DateTime<Utc>> for Time {
    fn from(at: DateTime<Utc>) -> Self {
        Self(DateTime::from_timestamp_micros(at.timestamp_micros()).unwrap_or(at))
    }
}

impl std::fmt::Display for Time {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.0.to_rfc3339_opts(SecondsFormat::Micros, true))
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            serializer.collect_str(self)
        } else {
            serializer.serialize_i64(self.0.timestamp_micros())
        }
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if !deserializer.is_human_readable() {
            let micros = i64::deserialize(deserializer)?;
            let at = DateTime::from_timestamp_micros(micros);
            return at
                .map(Self)
                .ok_or_else(|| D::Error::custom(format!("{micros} microseconds is out of range")));
        }
        let text = String::deserialize(deserializer)?;
        let at = text.parse().ok().map(Self).filter(|at| at.to_string() == text);
        at.ok_or_else(|| {
            D::Error::custom(format!("`{text}` is not a time like 2026-01-01T00:00:00.000000Z"))
        })
    }
}

/// The bytes of a payload in a record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum Stored {
    Inline(#[serde(with = "serde_bytes")] Vec<u8>),
    Blob(BlobRef),
}

/// The name of a blob, and the length of its content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BlobRef {
    pub(crate) hash: [u8; 32],
    pub(crate) len: u64,
}

/// An event; its position is in the key of its record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Event<P> {
    pub(crate) at: Time,
    pub(crate) kind: EventKind<P>,
}

/// Every variant has named fields, even if none: a line of a file holds them beside `position`,
/// `at` and `kind`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) enum EventKind<P> {
    RunStarted {
        workflow: String,
        input: P,
        parent: Option<RunId>,
        labels: BTreeMap<String, String>,
        cause: Cause,
    },
    ActivityStarted {
        slot: Slot,
        name: String,
        input: P,
        attempt: u32,
    },
    ActivityProgressed {
        slot: Slot,
        details: P,
    },
    ActivityFailed {
        slot: Slot,
        name: String,
        input: P,
        attempt: u32,
        failure: Failure,
        retry_at: Option<Time>,
    },
    ActivityCompleted {
        slot: Slot,
        name: String,
        input: P,
        attempt: u32,
        output: P,
    },
    ChildStarted {
        command: u32,
        run: RunId,
        workflow: String,
        input: P,
    },
    MessageAwaited {
        command: u32,
        deadline: Option<Time>,
    },
    MessageReceived {
        command: u32,
        message: Option<Message<P>>,
    },
    SignalSent {
        command: u32,
        to: RunId,
        name: String,
        payload: P,
    },
    CancelSent {
        command: u32,
        to: RunId,
        request: RequestedBy,
    },
    TimerStarted {
        command: u32,
        fire_at: Time,
    },
    TimerFired {
        command: u32,
    },
    TimeRead {
        command: u32,
    },
    UuidDrawn {
        command: u32,
        uuid: Uuid,
    },
    VersionMarked {
        command: u32,
        change: String,
        version: u32,
    },
    StatusPublished {
        command: u32,
        key: String,
        value: P,
    },
    CancelDelivered {
        command: u32,
        digest: CommandDigest,
        request: RequestedBy,
    },
    RunPaused {
        request: RequestedBy,
    },
    RunResumed {
        request: RequestedBy,
    },
    RunParked {
        slot: Slot,
        effect: UnknownEffect,
    },
    RunReconciled {
        slot: Slot,
        happened: bool,
        request: RequestedBy,
    },
    RunCompleted {
        output: P,
    },
    RunFailed {
        failure: Failure,
    },
    RunCancelled {},
    RunTerminated {
        request: RequestedBy,
    },
}

/// A message in an event or in a file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Message<P> {
    pub(crate) seq: u64,
    pub(crate) at: Time,
    pub(crate) body: MessageBody<P>,
}

/// A message in a mailbox; its number is in the key of its record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Mail<P> {
    pub(crate) at: Time,
    pub(crate) body: MessageBody<P>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) enum MessageBody<P> {
    Signal { name: String, payload: P, from: Option<RunId>, request: Option<RequestedBy> },
    ChildEnded { run: RunId, outcome: Outcome<P> },
    Pause(RequestedBy),
    Resume(RequestedBy),
    Cancel(RequestedBy),
    Terminate(RequestedBy),
    Reconcile { happened: bool, output: P, request: RequestedBy },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum Outcome<P> {
    Completed(P),
    Failed(Failure),
    Cancelled,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Summary {
    pub(crate) workflow: String,
    pub(crate) parent: Option<RunId>,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) status: Status,
    pub(crate) origin: u64,
    pub(crate) started_at: Time,
    pub(crate) ended_at: Option<Time>,
    pub(crate) pruned: Option<Pruned>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Status {
    Running,
    Waiting { until: Option<Time>, machine: Option<String> },
    Paused(RequestedBy),
    Parked(UnknownEffect),
    Completed,
    Failed(String),
    Cancelled,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Pruned {
    pub(crate) events: u64,
    pub(crate) at: Time,
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
