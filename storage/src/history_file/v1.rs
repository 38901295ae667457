//! The frozen shapes of version 1: what the lines of a file say, name for name.
//!
//! Never change a type here: files that were written would not be read any more. A new shape is a new module with a
//! new version in the schema, and a conversion from this one. The order of fields is the order in which they are
//! written.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

/// A payload, as `embed` makes it.
pub(super) type Json = Box<RawValue>;

/// UTC, RFC 3339 with six digits of a second and `Z`.
pub(super) type Time = String;

/// The first line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Header {
    pub(super) schema: String,
    pub(super) run: String,
    pub(super) events: u64,
}

/// The last line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Footer {
    pub(super) end: bool,
    pub(super) blake3: String,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Cause {
    Started,
    ContinuedAsNew,
    Restarted,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Request {
    pub(super) by: String,
    pub(super) why: String,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum FailureKind {
    Retryable,
    Terminal,
    Cancelled,
    Machine,
    RateLimited,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Failure {
    pub(super) kind: FailureKind,
    pub(super) message: String,
    /// With `rate_limited`, and only there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) until: Option<Time>,
}

/// The names of all kinds, as `kind` has them.
pub(super) const KINDS: [&str; 24] = [
    "RunStarted",
    "ActivityStarted",
    "ActivityProgressed",
    "ActivityFailed",
    "ActivityCompleted",
    "ChildStarted",
    "MessageAwaited",
    "MessageReceived",
    "SignalSent",
    "TimerStarted",
    "TimerFired",
    "TimeRead",
    "UuidDrawn",
    "VersionMarked",
    "StatusPublished",
    "CancelDelivered",
    "RunPaused",
    "RunResumed",
    "RunParked",
    "RunReconciled",
    "RunCompleted",
    "RunFailed",
    "RunCancelled",
    "RunTerminated",
];

/// The kind of an event and its fields. Every variant has named fields, if only none: a line holds them beside
/// `position`, `at` and `kind`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) enum EventKind {
    RunStarted {
        workflow: String,
        input: Json,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent: Option<String>,
        labels: BTreeMap<String, String>,
        cause: Cause,
    },
    ActivityStarted {
        command: u32,
        call: u16,
        #[serde(default = "one", skip_serializing_if = "is_one")]
        calls: u16,
        name: String,
        input: Json,
        attempt: u32,
    },
    ActivityProgressed {
        command: u32,
        call: u16,
        #[serde(default = "one", skip_serializing_if = "is_one")]
        calls: u16,
        details: Json,
    },
    ActivityFailed {
        command: u32,
        call: u16,
        #[serde(default = "one", skip_serializing_if = "is_one")]
        calls: u16,
        name: String,
        input: Json,
        attempt: u32,
        failure: Failure,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_at: Option<Time>,
    },
    ActivityCompleted {
        command: u32,
        call: u16,
        #[serde(default = "one", skip_serializing_if = "is_one")]
        calls: u16,
        name: String,
        input: Json,
        attempt: u32,
        output: Json,
    },
    ChildStarted {
        command: u32,
        run: String,
        workflow: String,
        input: Json,
    },
    MessageAwaited {
        command: u32,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        deadline: Option<Time>,
    },
    MessageReceived {
        command: u32,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<Message>,
    },
    SignalSent {
        command: u32,
        to: String,
        name: String,
        payload: Json,
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
        uuid: String,
    },
    VersionMarked {
        command: u32,
        change: String,
        version: u32,
    },
    StatusPublished {
        command: u32,
        key: String,
        value: Json,
    },
    CancelDelivered {
        command: u32,
        digest: String,
        request: Request,
    },
    RunPaused {
        request: Request,
    },
    RunResumed {
        request: Request,
    },
    RunParked {
        command: u32,
        call: u16,
        #[serde(default = "one", skip_serializing_if = "is_one")]
        calls: u16,
        reason: String,
    },
    RunReconciled {
        command: u32,
        call: u16,
        #[serde(default = "one", skip_serializing_if = "is_one")]
        calls: u16,
        landed: bool,
        request: Request,
    },
    RunCompleted {
        output: Json,
    },
    RunFailed {
        failure: Failure,
    },
    RunCancelled {},
    RunTerminated {
        request: Request,
    },
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Message {
    pub(super) seq: u64,
    pub(super) at: Time,
    pub(super) body: MessageBody,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) enum MessageBody {
    Signal {
        name: String,
        payload: Json,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        request: Option<Request>,
    },
    ChildEnded {
        run: String,
        outcome: Outcome,
    },
    Pause(Request),
    Resume(Request),
    Cancel(Request),
    Terminate(Request),
    Reconcile {
        landed: bool,
        #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
        output: Option<Json>,
        request: Request,
    },
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Outcome {
    Completed(Json),
    Failed(Failure),
    Cancelled,
}

/// Most commands have one call.
fn one() -> u16 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks by reference")]
fn is_one(calls: &u16) -> bool {
    *calls == 1
}

/// A payload that is there, even if it is `null`.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Json>, D::Error> {
    Json::deserialize(deserializer).map(Some)
}
