//! From the engine's types to the frozen ones. Every match is exhaustive: a new kind of event does not compile until it
//! is decided how a file shows it.

use chrono::{DateTime, SecondsFormat, Utc};
use longhaul_engine::event::{self as domain, Cause};
use longhaul_engine::{Failure, FailureKind, Slot};

use super::embed::embed;
use super::v1;

/// The kind of an event; the error says which payload is not JSON.
pub(super) fn kind(kind: &domain::EventKind) -> Result<v1::EventKind, String> {
    use domain::EventKind as From;
    use v1::EventKind as To;
    Ok(match kind.clone() {
        From::RunStarted { workflow, input, parent, labels, cause: why } => To::RunStarted {
            workflow,
            input: embed(&input)?,
            parent: parent.map(String::from),
            labels,
            cause: cause(&why),
        },
        From::ActivityStarted { slot: Slot { command, call, calls }, name, input, attempt } => {
            To::ActivityStarted { command, call, calls, name, input: embed(&input)?, attempt }
        }
        From::ActivityProgressed { slot: Slot { command, call, calls }, details } => {
            To::ActivityProgressed { command, call, calls, details: embed(&details)? }
        }
        From::ActivityFailed { slot: Slot { command, call, calls }, name, input, attempt, failure, retry_at } => {
            let (failure, retry_at) = (self::failure(failure), retry_at.map(time));
            To::ActivityFailed { command, call, calls, name, input: embed(&input)?, attempt, failure, retry_at }
        }
        From::ActivityCompleted { slot: Slot { command, call, calls }, name, input, attempt, output } => {
            let (input, output) = (embed(&input)?, embed(&output)?);
            To::ActivityCompleted { command, call, calls, name, input, attempt, output }
        }
        From::ChildStarted { command, run, workflow, input } => {
            To::ChildStarted { command, run: run.into(), workflow, input: embed(&input)? }
        }
        From::MessageAwaited { command, deadline } => To::MessageAwaited { command, deadline: deadline.map(time) },
        From::MessageReceived { command, message } => {
            To::MessageReceived { command, message: message.map(self::message).transpose()? }
        }
        From::SignalSent { command, to, name, payload } => {
            To::SignalSent { command, to: to.into(), name, payload: embed(&payload)? }
        }
        From::TimerStarted { command, fire_at } => To::TimerStarted { command, fire_at: time(fire_at) },
        From::TimerFired { command } => To::TimerFired { command },
        From::TimeRead { command } => To::TimeRead { command },
        From::UuidDrawn { command, uuid } => To::UuidDrawn { command, uuid: uuid.to_string() },
        From::VersionMarked { command, change, version } => To::VersionMarked { command, change, version },
        From::StatusPublished { command, key, value } => To::StatusPublished { command, key, value: embed(&value)? },
        From::CancelDelivered { command, digest, request } => {
            To::CancelDelivered { command, digest: digest.to_string(), request: self::request(request) }
        }
        From::RunPaused(request) => To::RunPaused { request: self::request(request) },
        From::RunResumed(request) => To::RunResumed { request: self::request(request) },
        From::RunParked { slot: Slot { command, call, calls }, reason } => {
            To::RunParked { command, call, calls, reason }
        }
        From::RunReconciled { slot: Slot { command, call, calls }, landed, request } => {
            To::RunReconciled { command, call, calls, landed, request: self::request(request) }
        }
        From::RunCompleted { output } => To::RunCompleted { output: embed(&output)? },
        From::RunFailed { failure } => To::RunFailed { failure: self::failure(failure) },
        From::RunCancelled => To::RunCancelled {},
        From::RunTerminated(request) => To::RunTerminated { request: self::request(request) },
    })
}

/// Whole microseconds, as logs keep them.
pub(super) fn time(at: DateTime<Utc>) -> v1::Time {
    at.to_rfc3339_opts(SecondsFormat::Micros, true)
}

fn cause(cause: &Cause) -> v1::Cause {
    match cause {
        Cause::Started => v1::Cause::Started,
        Cause::ContinuedAsNew => v1::Cause::ContinuedAsNew,
        Cause::Restarted => v1::Cause::Restarted,
    }
}

pub(super) fn message(message: domain::Message) -> Result<v1::Message, String> {
    use domain::MessageBody as From;
    use v1::MessageBody as To;
    let body = match message.body {
        From::Signal { name, payload, from, request } => To::Signal {
            name,
            payload: embed(&payload)?,
            from: from.map(String::from),
            request: request.map(self::request),
        },
        From::ChildEnded { run, outcome } => To::ChildEnded { run: run.into(), outcome: self::outcome(outcome)? },
        From::Pause(request) => To::Pause(self::request(request)),
        From::Resume(request) => To::Resume(self::request(request)),
        From::Cancel(request) => To::Cancel(self::request(request)),
        From::Terminate(request) => To::Terminate(self::request(request)),
        From::Reconcile { landed, output, request } => {
            let output = output.as_ref().map(embed).transpose()?;
            To::Reconcile { landed, output, request: self::request(request) }
        }
    };
    Ok(v1::Message { seq: message.seq, at: time(message.at), body })
}

fn outcome(outcome: domain::Outcome) -> Result<v1::Outcome, String> {
    Ok(match outcome {
        domain::Outcome::Completed(output) => v1::Outcome::Completed(embed(&output)?),
        domain::Outcome::Failed(failure) => v1::Outcome::Failed(self::failure(failure)),
        domain::Outcome::Cancelled => v1::Outcome::Cancelled,
    })
}

fn failure(failure: Failure) -> v1::Failure {
    let (kind, until) = match failure.kind {
        FailureKind::Retryable => (v1::FailureKind::Retryable, None),
        FailureKind::Terminal => (v1::FailureKind::Terminal, None),
        FailureKind::Cancelled => (v1::FailureKind::Cancelled, None),
        FailureKind::Machine => (v1::FailureKind::Machine, None),
        FailureKind::RateLimited { until } => (v1::FailureKind::RateLimited, Some(time(until))),
    };
    v1::Failure { kind, message: failure.message, until }
}

fn request(domain::Request { by, why }: domain::Request) -> v1::Request {
    v1::Request { by, why }
}
