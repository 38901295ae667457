//! From the frozen types back to the engine's, fetching payloads from blobs on the way.

use chrono::{DateTime, Utc};
use longhaul_engine::event::{self as domain, Cause};
use longhaul_engine::id::{MessageSeq, Position, RunId, Slot};
use longhaul_engine::{CommandDigest, Failure, FailureKind, Payload, Status, Summary};

use super::v1;
use crate::blob::Source;
use crate::flaw::Flaw;

/// Converts, with a place to fetch blobs from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Unpacker<'a>(pub(crate) Source<'a>);

impl Unpacker<'_> {
    pub(crate) fn payload(self, stored: v1::Stored) -> Result<Payload, Flaw> {
        match stored {
            v1::Stored::Inline(bytes) => Ok(Payload::from_bytes(bytes)),
            v1::Stored::Blob(name) => Ok(Payload::from_bytes(self.0.fetch_payload(&name)?)),
        }
    }

    pub(crate) fn event(self, position: Position, event: v1::Event) -> Result<domain::Event, Flaw> {
        Ok(domain::Event { position, at: time(event.at)?, kind: self.kind(event.kind)? })
    }

    fn kind(self, kind: v1::EventKind) -> Result<domain::EventKind, Flaw> {
        use domain::EventKind as To;
        use v1::EventKind as From;
        Ok(match kind {
            From::RunStarted { workflow, input, parent, labels, cause } => To::RunStarted {
                workflow,
                input: self.payload(input)?,
                parent: parent.map(run).transpose()?,
                labels: labels.into_iter().collect(),
                cause: match cause {
                    v1::Cause::Started => Cause::Started,
                    v1::Cause::ContinuedAsNew => Cause::ContinuedAsNew,
                    v1::Cause::Restarted => Cause::Restarted,
                },
            },
            From::ActivityStarted { .. }
            | From::ActivityProgressed { .. }
            | From::ActivityFailed { .. }
            | From::ActivityCompleted { .. } => self.activity(kind)?,
            From::RunPaused(request) => To::RunPaused(self::request(request)),
            From::RunResumed(request) => To::RunResumed(self::request(request)),
            From::RunParked { slot, reason } => To::RunParked { slot: self::slot(slot), reason },
            From::RunReconciled { slot, landed, request } => {
                To::RunReconciled { slot: self::slot(slot), landed, request: self::request(request) }
            }
            From::RunCompleted { output } => To::RunCompleted { output: self.payload(output)? },
            From::RunFailed { failure } => To::RunFailed { failure: self::failure(failure)? },
            From::RunCancelled => To::RunCancelled,
            From::RunTerminated(request) => To::RunTerminated(self::request(request)),
            _ => self.command(kind)?,
        })
    }

    fn activity(self, kind: v1::EventKind) -> Result<domain::EventKind, Flaw> {
        use domain::EventKind as To;
        use v1::EventKind as From;
        Ok(match kind {
            From::ActivityStarted { slot, name, input, attempt } => {
                To::ActivityStarted { slot: self::slot(slot), name, input: self.payload(input)?, attempt }
            }
            From::ActivityProgressed { slot, details } => {
                To::ActivityProgressed { slot: self::slot(slot), details: self.payload(details)? }
            }
            From::ActivityFailed { slot, name, input, attempt, failure, retry_at } => To::ActivityFailed {
                slot: self::slot(slot),
                name,
                input: self.payload(input)?,
                attempt,
                failure: self::failure(failure)?,
                retry_at: retry_at.map(time).transpose()?,
            },
            From::ActivityCompleted { slot, name, input, attempt, output } => To::ActivityCompleted {
                slot: self::slot(slot),
                name,
                input: self.payload(input)?,
                attempt,
                output: self.payload(output)?,
            },
            _ => unreachable!("only events of activities come here"),
        })
    }

    fn command(self, kind: v1::EventKind) -> Result<domain::EventKind, Flaw> {
        use domain::EventKind as To;
        use v1::EventKind as From;
        Ok(match kind {
            From::ChildStarted { command, run: child, workflow, input } => {
                To::ChildStarted { command, run: run(child)?, workflow, input: self.payload(input)? }
            }
            From::MessageAwaited { command, deadline } => {
                To::MessageAwaited { command, deadline: deadline.map(time).transpose()? }
            }
            From::MessageReceived { command, message } => {
                let message = message.map(|numbered| self.message(numbered.seq, numbered.message)).transpose()?;
                To::MessageReceived { command, message }
            }
            From::SignalSent { command, to, name, payload } => {
                To::SignalSent { command, to: run(to)?, name, payload: self.payload(payload)? }
            }
            From::TimerStarted { command, fire_at } => To::TimerStarted { command, fire_at: time(fire_at)? },
            From::TimerFired { command } => To::TimerFired { command },
            From::TimeRead { command } => To::TimeRead { command },
            From::UuidDrawn { command, uuid } => To::UuidDrawn { command, uuid: uuid::Uuid::from_bytes(uuid) },
            From::VersionMarked { command, change, version } => To::VersionMarked { command, change, version },
            From::StatusPublished { command, key, value } => {
                To::StatusPublished { command, key, value: self.payload(value)? }
            }
            From::CancelDelivered { command, digest, request } => {
                To::CancelDelivered { command, digest: CommandDigest(digest), request: self::request(request) }
            }
            _ => unreachable!("the other kinds are converted by the callers"),
        })
    }

    pub(crate) fn message(self, seq: MessageSeq, message: v1::Message) -> Result<domain::Message, Flaw> {
        use domain::MessageBody as To;
        use v1::MessageBody as From;
        let body = match message.body {
            From::Signal { name, payload, from, request } => To::Signal {
                name,
                payload: self.payload(payload)?,
                from: from.map(run).transpose()?,
                request: request.map(self::request),
            },
            From::ChildEnded { run: child, outcome } => {
                To::ChildEnded { run: run(child)?, outcome: self.outcome(outcome)? }
            }
            From::Pause(request) => To::Pause(self::request(request)),
            From::Resume(request) => To::Resume(self::request(request)),
            From::Cancel(request) => To::Cancel(self::request(request)),
            From::Terminate(request) => To::Terminate(self::request(request)),
            From::Reconcile { landed, output, request } => To::Reconcile {
                landed,
                output: output.map(|output| self.payload(output)).transpose()?,
                request: self::request(request),
            },
        };
        Ok(domain::Message { seq, at: time(message.at)?, body })
    }

    fn outcome(self, outcome: v1::Outcome) -> Result<domain::Outcome, Flaw> {
        Ok(match outcome {
            v1::Outcome::Completed(output) => domain::Outcome::Completed(self.payload(output)?),
            v1::Outcome::Failed(failure) => domain::Outcome::Failed(self::failure(failure)?),
            v1::Outcome::Cancelled => domain::Outcome::Cancelled,
        })
    }
}

pub(crate) fn summary(summary: v1::Summary) -> Result<Summary, Flaw> {
    Ok(Summary {
        workflow: summary.workflow,
        parent: summary.parent.map(run).transpose()?,
        labels: summary.labels.into_iter().collect(),
        status: match summary.status {
            v1::Status::Running => Status::Running,
            v1::Status::Waiting { until, machine } => Status::Waiting { until: until.map(time).transpose()?, machine },
            v1::Status::Paused(request) => Status::Paused(self::request(request)),
            v1::Status::Parked(reason) => Status::Parked(reason),
            v1::Status::Completed => Status::Completed,
            v1::Status::Failed(message) => Status::Failed(message),
            v1::Status::Cancelled => Status::Cancelled,
        },
        origin: summary.origin,
        started_at: time(summary.started_at)?,
        ended_at: summary.ended_at.map(time).transpose()?,
    })
}

fn time(micros: v1::Time) -> Result<DateTime<Utc>, Flaw> {
    DateTime::from_timestamp_micros(micros)
        .ok_or_else(|| Flaw::Damaged(format!("{micros} microseconds is no time that a clock can show")))
}

fn run(text: String) -> Result<RunId, Flaw> {
    RunId::new(text).map_err(|error| Flaw::Damaged(error.to_string()))
}

fn slot(slot: v1::Slot) -> Slot {
    Slot { command: slot.command, call: slot.call, calls: slot.calls }
}

fn request(request: v1::Request) -> domain::Request {
    domain::Request { by: request.by, why: request.why }
}

fn failure(failure: v1::Failure) -> Result<Failure, Flaw> {
    let kind = match failure.kind {
        v1::FailureKind::Retryable => FailureKind::Retryable,
        v1::FailureKind::Terminal => FailureKind::Terminal,
        v1::FailureKind::Cancelled => FailureKind::Cancelled,
        v1::FailureKind::Machine => FailureKind::Machine,
        v1::FailureKind::RateLimited { until } => FailureKind::RateLimited { until: time(until)? },
    };
    Ok(Failure { kind, message: failure.message })
}
