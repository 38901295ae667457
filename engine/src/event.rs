//! The only persisted vocabulary: the events of a run, in the past tense.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::failure::Failure;
use crate::id::{MessageSeq, Position, RunId, Slot};
use crate::payload::Payload;

/// One entry of a history.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// Its position in the history of its run.
    pub position: Position,
    /// When it was recorded.
    pub at: DateTime<Utc>,
    /// The kind of event, with its data.
    pub kind: EventKind,
}

/// Why a segment of a history began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// The run was started.
    Started,
    /// The workflow continued as new with fresh input, to keep its history short.
    ContinuedAsNew,
    /// An ended run was started again.
    Restarted,
}

/// The kind of an event. Events with a `slot` or `command` answer that command of the workflow; the
/// others are notes, which replay skips.
#[derive(Debug, Clone, PartialEq)]
pub enum EventKind {
    /// A segment began; replay starts at the last of these.
    RunStarted {
        /// The workflow that decides.
        workflow: String,
        /// Its input.
        input: Payload,
        /// The parent run, which receives its outcome.
        parent: Option<RunId>,
        /// Labels for people and filters.
        labels: BTreeMap<String, String>,
        /// Why it began.
        cause: Cause,
    },
    /// An attempt of a guarded activity is about to start its effect.
    ActivityStarted {
        /// The call.
        slot: Slot,
        /// The activity.
        name: String,
        /// Its input.
        input: Payload,
        /// The attempt number, from one.
        attempt: u32,
    },
    /// A running activity recorded its progress, for its next attempt.
    ActivityProgressed {
        /// The call.
        slot: Slot,
        /// The progress, passed to the next attempt.
        details: Payload,
    },
    /// An attempt failed.
    ActivityFailed {
        /// The call.
        slot: Slot,
        /// The activity.
        name: String,
        /// Its input.
        input: Payload,
        /// The attempt number, from one.
        attempt: u32,
        /// The failure.
        failure: Failure,
        /// When the next attempt is due; `None`: this was the last.
        retry_at: Option<DateTime<Utc>>,
    },
    /// The activity is done.
    ActivityCompleted {
        /// The call.
        slot: Slot,
        /// The activity.
        name: String,
        /// Its input.
        input: Payload,
        /// The attempt number, from one.
        attempt: u32,
        /// Its output.
        output: Payload,
    },
    /// A child run was started, or joined if it existed.
    ChildStarted {
        /// The command.
        command: u32,
        /// The child.
        run: RunId,
        /// Its workflow.
        workflow: String,
        /// Its input.
        input: Payload,
    },
    /// The mailbox was empty and the run began to wait.
    MessageAwaited {
        /// The command.
        command: u32,
        /// When it stops waiting.
        deadline: Option<DateTime<Utc>>,
    },
    /// A message was taken from the mailbox, or none came in time.
    MessageReceived {
        /// The command.
        command: u32,
        /// The message; `None`: the mailbox was empty, or the deadline passed.
        message: Option<Message>,
    },
    /// A message was put into another run's mailbox.
    SignalSent {
        /// The command.
        command: u32,
        /// The run that receives it.
        to: RunId,
        /// The name of the message.
        name: String,
        /// Its content.
        payload: Payload,
    },
    /// The cancellation of another run was requested.
    CancelSent {
        /// The command.
        command: u32,
        /// The run to cancel.
        to: RunId,
        /// The sender and the reason.
        request: RequestedBy,
    },
    /// A durable wait began.
    TimerStarted {
        /// The command.
        command: u32,
        /// When it ends.
        fire_at: DateTime<Utc>,
    },
    /// A durable wait ended.
    TimerFired {
        /// The command.
        command: u32,
    },
    /// The workflow read the clock; the answer is the time of this event.
    TimeRead {
        /// The command.
        command: u32,
    },
    /// The workflow drew a unique id.
    UuidDrawn {
        /// The command.
        command: u32,
        /// The id.
        uuid: Uuid,
    },
    /// The run passed a change of its code.
    VersionMarked {
        /// The command.
        command: u32,
        /// The name of the change.
        change: String,
        /// The version that this run follows.
        version: u32,
    },
    /// The workflow published a value for others to read.
    StatusPublished {
        /// The command.
        command: u32,
        /// The name of the value.
        key: String,
        /// The value; `null` removes it.
        value: Payload,
    },
    /// A request to cancel reached the workflow, as the result of a command.
    CancelDelivered {
        /// The command.
        command: u32,
        /// The command that was cancelled.
        digest: CommandDigest,
        /// The sender and the reason.
        request: RequestedBy,
    },
    /// The run stopped before its next command, until resumed.
    RunPaused(RequestedBy),
    /// The run continues.
    RunResumed(RequestedBy),
    /// The outcome of a guarded activity is unknown; a person must settle it.
    RunParked {
        /// The call.
        slot: Slot,
        /// The activity and the reason.
        effect: UnknownEffect,
    },
    /// A person settled the outcome of a guarded activity.
    RunReconciled {
        /// The call.
        slot: Slot,
        /// Whether the effect happened.
        happened: bool,
        /// The sender and the reason.
        request: RequestedBy,
    },
    /// The run is over, with a result.
    RunCompleted {
        /// The result.
        output: Payload,
    },
    /// The run is over, without one.
    RunFailed {
        /// The failure.
        failure: Failure,
    },
    /// The run is over, as requested.
    RunCancelled,
    /// The run was terminated; its workflow did not run again.
    RunTerminated(RequestedBy),
}

/// A guarded activity with an unknown outcome.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("it is unknown whether `{activity}` (attempt {attempt}) happened: {reason}")]
pub struct UnknownEffect {
    /// The activity.
    pub activity: String,
    /// The attempt number, from one.
    pub attempt: u32,
    /// Why the probe could not determine the outcome.
    pub reason: String,
}

/// Identifies a command of a workflow: blake3 of its canonical encoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CommandDigest(pub [u8; 32]);

impl std::fmt::Display for CommandDigest {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&blake3::Hash::from(self.0).to_hex())
    }
}

impl From<CommandDigest> for String {
    fn from(digest: CommandDigest) -> Self {
        digest.to_string()
    }
}

impl TryFrom<String> for CommandDigest {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        let hash = blake3::Hash::from_hex(&text)
            .map_err(|error| format!("`{text}` is not a digest: {error}"))?;
        Ok(Self(*hash.as_bytes()))
    }
}

/// The sender of a request and the reason.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RequestedBy {
    /// A person or a program.
    pub by: String,
    /// Free text; may be empty.
    pub why: String,
}

impl RequestedBy {
    /// A request of Longhaul itself.
    pub fn longhaul(why: impl Into<String>) -> Self {
        Self { by: "longhaul".into(), why: why.into() }
    }
}

/// Something in a run's mailbox.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    /// Its sequence number in the mailbox.
    pub seq: MessageSeq,
    /// When it was sent.
    pub at: DateTime<Utc>,
    /// Its content.
    pub body: MessageBody,
}

/// The content of a message: for the workflow, or for the engine that runs it.
#[derive(Debug, Clone, PartialEq)]
pub enum MessageBody {
    /// A signal, for the workflow.
    Signal {
        /// Its name.
        name: String,
        /// Its content.
        payload: Payload,
        /// The run that sent it, if a run did.
        from: Option<RunId>,
        /// The sender and the reason, if a person sent it.
        request: Option<RequestedBy>,
    },
    /// The outcome of a child run, for the workflow.
    ChildEnded {
        /// The child.
        run: RunId,
        /// How it ended.
        outcome: Outcome,
    },
    /// Stop before the next command.
    Pause(RequestedBy),
    /// Resume.
    Resume(RequestedBy),
    /// Cancel: the command under way, or the next one, fails as cancelled.
    Cancel(RequestedBy),
    /// Terminate: the command under way is aborted, and the workflow does not run again.
    Terminate(RequestedBy),
    /// Settles a guarded activity with an unknown outcome.
    Reconcile {
        /// Whether the effect happened.
        happened: bool,
        /// Its output if it happened, else `null`.
        output: Payload,
        /// The sender and the reason.
        request: RequestedBy,
    },
}

impl MessageBody {
    /// A signal from a run.
    pub fn signal_from(from: &RunId, name: impl Into<String>, payload: Payload) -> Self {
        Self::Signal { name: name.into(), payload, from: Some(from.clone()), request: None }
    }

    /// A signal from a program, with neither a run nor a person as sender.
    pub fn signal(name: impl Into<String>, payload: Payload) -> Self {
        Self::Signal { name: name.into(), payload, from: None, request: None }
    }

    /// A signal from a person, or from a program in the name of one.
    pub fn signal_by(name: impl Into<String>, payload: Payload, request: RequestedBy) -> Self {
        Self::Signal { name: name.into(), payload, from: None, request: Some(request) }
    }
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// With a result.
    Completed(Payload),
    /// Without one.
    Failed(Failure),
    /// As requested.
    Cancelled,
}

impl EventKind {
    /// The message that this event of a run sends, with its receiver.
    pub fn sent(&self, from: &RunId) -> Option<(&RunId, MessageBody)> {
        match self {
            Self::SignalSent { to, name, payload, .. } => {
                Some((to, MessageBody::signal_from(from, name, payload.clone())))
            }
            Self::CancelSent { to, request, .. } => {
                Some((to, MessageBody::Cancel(request.clone())))
            }
            _ => None,
        }
    }

    /// The name of the kind, as shown to people and scripts.
    pub fn name(&self) -> &'static str {
        match self {
            Self::RunStarted { .. } => "RunStarted",
            Self::ActivityStarted { .. } => "ActivityStarted",
            Self::ActivityProgressed { .. } => "ActivityProgressed",
            Self::ActivityFailed { .. } => "ActivityFailed",
            Self::ActivityCompleted { .. } => "ActivityCompleted",
            Self::ChildStarted { .. } => "ChildStarted",
            Self::MessageAwaited { .. } => "MessageAwaited",
            Self::MessageReceived { .. } => "MessageReceived",
            Self::SignalSent { .. } => "SignalSent",
            Self::CancelSent { .. } => "CancelSent",
            Self::TimerStarted { .. } => "TimerStarted",
            Self::TimerFired { .. } => "TimerFired",
            Self::TimeRead { .. } => "TimeRead",
            Self::UuidDrawn { .. } => "UuidDrawn",
            Self::VersionMarked { .. } => "VersionMarked",
            Self::StatusPublished { .. } => "StatusPublished",
            Self::CancelDelivered { .. } => "CancelDelivered",
            Self::RunPaused(_) => "RunPaused",
            Self::RunResumed(_) => "RunResumed",
            Self::RunParked { .. } => "RunParked",
            Self::RunReconciled { .. } => "RunReconciled",
            Self::RunCompleted { .. } => "RunCompleted",
            Self::RunFailed { .. } => "RunFailed",
            Self::RunCancelled => "RunCancelled",
            Self::RunTerminated(_) => "RunTerminated",
        }
    }

    /// The call that this event answers, if it is one of an activity.
    pub fn slot(&self) -> Option<Slot> {
        match self {
            Self::ActivityStarted { slot, .. }
            | Self::ActivityProgressed { slot, .. }
            | Self::ActivityFailed { slot, .. }
            | Self::ActivityCompleted { slot, .. }
            | Self::RunReconciled { slot, .. } => Some(*slot),
            _ => None,
        }
    }

    /// The command that this event answers; `None` for notes, beginnings and ends.
    pub fn command(&self) -> Option<u32> {
        match self {
            Self::ActivityStarted { slot, .. }
            | Self::ActivityProgressed { slot, .. }
            | Self::ActivityFailed { slot, .. }
            | Self::ActivityCompleted { slot, .. }
            | Self::RunReconciled { slot, .. } => Some(slot.command),
            Self::ChildStarted { command, .. }
            | Self::MessageAwaited { command, .. }
            | Self::MessageReceived { command, .. }
            | Self::SignalSent { command, .. }
            | Self::CancelSent { command, .. }
            | Self::TimerStarted { command, .. }
            | Self::TimerFired { command }
            | Self::TimeRead { command }
            | Self::UuidDrawn { command, .. }
            | Self::VersionMarked { command, .. }
            | Self::StatusPublished { command, .. }
            | Self::CancelDelivered { command, .. } => Some(*command),
            Self::RunStarted { .. }
            | Self::RunPaused(_)
            | Self::RunResumed(_)
            | Self::RunParked { .. }
            | Self::RunCompleted { .. }
            | Self::RunFailed { .. }
            | Self::RunCancelled
            | Self::RunTerminated(_) => None,
        }
    }

    /// Whether this event ends a pause: a resumption, a cancellation that is delivered, another
    /// pause, or the end of the run.
    pub(crate) fn ends_pause(&self) -> bool {
        matches!(self, Self::RunPaused(_) | Self::RunResumed(_) | Self::CancelDelivered { .. })
            || self.outcome().is_some()
    }

    /// How the run ended, if this event ended it.
    pub fn outcome(&self) -> Option<Outcome> {
        match self {
            Self::RunCompleted { output } => Some(Outcome::Completed(output.clone())),
            Self::RunFailed { failure } => Some(Outcome::Failed(failure.clone())),
            Self::RunCancelled | Self::RunTerminated(_) => Some(Outcome::Cancelled),
            _ => None,
        }
    }
}
