//! From the engine's types to the frozen ones, moving large payloads out into blobs on the way.

use chrono::{DateTime, Utc};
use longhaul_engine::event::{self as domain, Cause};
use longhaul_engine::id::{RunId, Slot};
use longhaul_engine::{Failure, FailureKind, Payload, Status, Summary};

use super::v1;
use crate::blob::{self, NewBlob};

/// A payload longer than this becomes a blob.
pub(crate) const INLINE_PAYLOAD: usize = 4 * 1024;

/// Converts, and collects the payloads that are too large for a record.
#[derive(Debug)]
pub(crate) struct Packer {
    inline: usize,
    pub(crate) blobs: Vec<NewBlob>,
}

impl Packer {
    /// Payloads over [`INLINE_PAYLOAD`] become blobs.
    pub(crate) fn new() -> Self {
        Self { inline: INLINE_PAYLOAD, blobs: Vec::new() }
    }

    /// Nothing becomes a blob: for stores without a disk.
    pub(crate) fn inline() -> Self {
        Self { inline: usize::MAX, blobs: Vec::new() }
    }

    /// Moves bytes of any kind into a blob.
    pub(crate) fn blob(&mut self, content: Payload) -> v1::BlobRef {
        let name = blob::name_of(content.as_bytes());
        self.blobs.push(NewBlob { name: name.clone(), content });
        name
    }

    pub(crate) fn payload(&mut self, payload: &Payload) -> v1::Stored {
        if payload.as_bytes().len() <= self.inline {
            v1::Stored::Inline(payload.as_bytes().to_vec())
        } else {
            v1::Stored::Blob(self.blob(payload.clone()))
        }
    }

    pub(crate) fn event(&mut self, event: &domain::Event) -> v1::Event {
        v1::Event { at: time(event.at), kind: self.kind(&event.kind) }
    }

    fn kind(&mut self, kind: &domain::EventKind) -> v1::EventKind {
        use domain::EventKind as From;
        use v1::EventKind as To;
        match kind {
            From::RunStarted { workflow, input, parent, labels, cause } => To::RunStarted {
                workflow: workflow.clone(),
                input: self.payload(input),
                parent: parent.as_ref().map(run),
                labels: labels.clone().into_iter().collect(),
                cause: match cause {
                    Cause::Started => v1::Cause::Started,
                    Cause::ContinuedAsNew => v1::Cause::ContinuedAsNew,
                    Cause::Restarted => v1::Cause::Restarted,
                },
            },
            From::ActivityStarted { .. }
            | From::ActivityProgressed { .. }
            | From::ActivityFailed { .. }
            | From::ActivityCompleted { .. } => self.activity(kind),
            From::RunPaused(request) => To::RunPaused(self::request(request)),
            From::RunResumed(request) => To::RunResumed(self::request(request)),
            From::RunParked { slot, reason } => To::RunParked { slot: self::slot(*slot), reason: reason.clone() },
            From::RunReconciled { slot, landed, request } => {
                To::RunReconciled { slot: self::slot(*slot), landed: *landed, request: self::request(request) }
            }
            From::RunCompleted { output } => To::RunCompleted { output: self.payload(output) },
            From::RunFailed { failure } => To::RunFailed { failure: self::failure(failure) },
            From::RunCancelled => To::RunCancelled,
            From::RunTerminated(request) => To::RunTerminated(self::request(request)),
            _ => self.command(kind),
        }
    }

    fn activity(&mut self, kind: &domain::EventKind) -> v1::EventKind {
        use domain::EventKind as From;
        use v1::EventKind as To;
        match kind {
            From::ActivityStarted { slot, name, input, attempt } => To::ActivityStarted {
                slot: self::slot(*slot),
                name: name.clone(),
                input: self.payload(input),
                attempt: *attempt,
            },
            From::ActivityProgressed { slot, details } => {
                To::ActivityProgressed { slot: self::slot(*slot), details: self.payload(details) }
            }
            From::ActivityFailed { slot, name, input, attempt, failure, retry_at } => To::ActivityFailed {
                slot: self::slot(*slot),
                name: name.clone(),
                input: self.payload(input),
                attempt: *attempt,
                failure: self::failure(failure),
                retry_at: retry_at.map(time),
            },
            From::ActivityCompleted { slot, name, input, attempt, output } => To::ActivityCompleted {
                slot: self::slot(*slot),
                name: name.clone(),
                input: self.payload(input),
                attempt: *attempt,
                output: self.payload(output),
            },
            _ => unreachable!("only events of activities come here"),
        }
    }

    fn command(&mut self, kind: &domain::EventKind) -> v1::EventKind {
        use domain::EventKind as From;
        use v1::EventKind as To;
        match kind.clone() {
            From::ChildStarted { command, run, workflow, input } => {
                To::ChildStarted { command, run: run.into(), workflow, input: self.payload(&input) }
            }
            From::MessageAwaited { command, deadline } => To::MessageAwaited { command, deadline: deadline.map(time) },
            From::MessageReceived { command, message } => To::MessageReceived {
                command,
                message: message.map(|message| v1::NumberedMessage {
                    seq: message.seq,
                    message: self.message(message.at, &message.body),
                }),
            },
            From::SignalSent { command, to, name, payload } => {
                To::SignalSent { command, to: to.into(), name, payload: self.payload(&payload) }
            }
            From::TimerStarted { command, fire_at } => To::TimerStarted { command, fire_at: time(fire_at) },
            From::TimerFired { command } => To::TimerFired { command },
            From::TimeRead { command } => To::TimeRead { command },
            From::UuidDrawn { command, uuid } => To::UuidDrawn { command, uuid: uuid.into_bytes() },
            From::VersionMarked { command, change, version } => To::VersionMarked { command, change, version },
            From::StatusPublished { command, key, value } => {
                To::StatusPublished { command, key, value: self.payload(&value) }
            }
            From::CancelDelivered { command, digest, request } => {
                To::CancelDelivered { command, digest: digest.0, request: self::request(&request) }
            }
            _ => unreachable!("the other kinds are converted by the callers"),
        }
    }

    pub(crate) fn message(&mut self, at: DateTime<Utc>, body: &domain::MessageBody) -> v1::Message {
        use domain::MessageBody as From;
        use v1::MessageBody as To;
        let body = match body {
            From::Signal { name, payload, from, request } => To::Signal {
                name: name.clone(),
                payload: self.payload(payload),
                from: from.as_ref().map(run),
                request: request.as_ref().map(self::request),
            },
            From::ChildEnded { run: child, outcome } => {
                To::ChildEnded { run: run(child), outcome: self.outcome(outcome) }
            }
            From::Pause(request) => To::Pause(self::request(request)),
            From::Resume(request) => To::Resume(self::request(request)),
            From::Cancel(request) => To::Cancel(self::request(request)),
            From::Terminate(request) => To::Terminate(self::request(request)),
            From::Reconcile { landed, output, request } => To::Reconcile {
                landed: *landed,
                output: output.as_ref().map(|output| self.payload(output)),
                request: self::request(request),
            },
        };
        v1::Message { at: time(at), body }
    }

    fn outcome(&mut self, outcome: &domain::Outcome) -> v1::Outcome {
        match outcome {
            domain::Outcome::Completed(output) => v1::Outcome::Completed(self.payload(output)),
            domain::Outcome::Failed(failure) => v1::Outcome::Failed(self::failure(failure)),
            domain::Outcome::Cancelled => v1::Outcome::Cancelled,
        }
    }
}

pub(crate) fn summary(summary: &Summary) -> v1::Summary {
    v1::Summary {
        workflow: summary.workflow.clone(),
        parent: summary.parent.as_ref().map(run),
        labels: summary.labels.clone().into_iter().collect(),
        status: match &summary.status {
            Status::Running => v1::Status::Running,
            Status::Waiting { until, machine } => {
                v1::Status::Waiting { until: until.map(time), machine: machine.clone() }
            }
            Status::Paused(request) => v1::Status::Paused(self::request(request)),
            Status::Parked(reason) => v1::Status::Parked(reason.clone()),
            Status::Completed => v1::Status::Completed,
            Status::Failed(message) => v1::Status::Failed(message.clone()),
            Status::Cancelled => v1::Status::Cancelled,
        },
        origin: summary.origin,
        started_at: time(summary.started_at),
        ended_at: summary.ended_at.map(time),
    }
}

pub(crate) fn time(at: DateTime<Utc>) -> v1::Time {
    at.timestamp_micros()
}

/// A time as it will be read back: whole microseconds.
pub(crate) fn rounded(at: DateTime<Utc>) -> DateTime<Utc> {
    DateTime::from_timestamp_micros(time(at)).unwrap_or(at)
}

fn run(run: &RunId) -> String {
    run.as_str().to_owned()
}

fn slot(slot: Slot) -> v1::Slot {
    v1::Slot { command: slot.command, call: slot.call, calls: slot.calls }
}

fn request(request: &domain::Request) -> v1::Request {
    v1::Request { by: request.by.clone(), why: request.why.clone() }
}

fn failure(failure: &Failure) -> v1::Failure {
    let kind = match failure.kind {
        FailureKind::Retryable => v1::FailureKind::Retryable,
        FailureKind::Terminal => v1::FailureKind::Terminal,
        FailureKind::Cancelled => v1::FailureKind::Cancelled,
        FailureKind::Machine => v1::FailureKind::Machine,
        FailureKind::RateLimited { until } => v1::FailureKind::RateLimited { until: time(until) },
    };
    v1::Failure { kind, message: failure.message.clone() }
}
