//! From the frozen types back to the engine's; an error says what is wrong, and the caller where.

use chrono::{DateTime, Utc};
use longhaul_engine::event::{self as domain, Cause};
use longhaul_engine::{Failure, FailureKind, RunId, Slot};
use uuid::Uuid;

use super::embed::extract;
use super::{freeze, v1};

pub(super) fn kind(kind: v1::EventKind) -> Result<domain::EventKind, String> {
    use domain::EventKind as To;
    use v1::EventKind as From;
    let slot = |command, call, calls| Slot { command, call, calls };
    Ok(match kind {
        From::RunStarted { workflow, input, parent, labels, cause: why } => To::RunStarted {
            workflow,
            input: extract(&input)?,
            parent: parent.map(run).transpose()?,
            labels,
            cause: cause(why),
        },
        From::ActivityStarted { command, call, calls, name, input, attempt } => {
            To::ActivityStarted { slot: slot(command, call, calls), name, input: extract(&input)?, attempt }
        }
        From::ActivityProgressed { command, call, calls, details } => {
            To::ActivityProgressed { slot: slot(command, call, calls), details: extract(&details)? }
        }
        From::ActivityFailed { command, call, calls, name, input, attempt, failure, retry_at } => {
            let (slot, input) = (slot(command, call, calls), extract(&input)?);
            let (failure, retry_at) = (self::failure(failure)?, retry_at.as_deref().map(time).transpose()?);
            To::ActivityFailed { slot, name, input, attempt, failure, retry_at }
        }
        From::ActivityCompleted { command, call, calls, name, input, attempt, output } => {
            let (input, output) = (extract(&input)?, extract(&output)?);
            To::ActivityCompleted { slot: slot(command, call, calls), name, input, attempt, output }
        }
        From::ChildStarted { command, run, workflow, input } => {
            To::ChildStarted { command, run: self::run(run)?, workflow, input: extract(&input)? }
        }
        From::MessageAwaited { command, deadline } => {
            To::MessageAwaited { command, deadline: deadline.as_deref().map(time).transpose()? }
        }
        From::MessageReceived { command, message } => {
            To::MessageReceived { command, message: message.map(self::message).transpose()? }
        }
        From::SignalSent { command, to, name, payload } => {
            To::SignalSent { command, to: run(to)?, name, payload: extract(&payload)? }
        }
        From::TimerStarted { command, fire_at } => To::TimerStarted { command, fire_at: time(&fire_at)? },
        From::TimerFired { command } => To::TimerFired { command },
        From::TimeRead { command } => To::TimeRead { command },
        From::UuidDrawn { command, uuid } => To::UuidDrawn { command, uuid: self::uuid(&uuid)? },
        From::VersionMarked { command, change, version } => To::VersionMarked { command, change, version },
        From::StatusPublished { command, key, value } => To::StatusPublished { command, key, value: extract(&value)? },
        From::CancelDelivered { command, digest, request } => {
            To::CancelDelivered { command, digest: digest.parse()?, request: self::request(request) }
        }
        From::RunPaused { request } => To::RunPaused(self::request(request)),
        From::RunResumed { request } => To::RunResumed(self::request(request)),
        From::RunParked { command, call, calls, reason } => To::RunParked { slot: slot(command, call, calls), reason },
        From::RunReconciled { command, call, calls, landed, request } => {
            To::RunReconciled { slot: slot(command, call, calls), landed, request: self::request(request) }
        }
        From::RunCompleted { output } => To::RunCompleted { output: extract(&output)? },
        From::RunFailed { failure } => To::RunFailed { failure: self::failure(failure)? },
        From::RunCancelled {} => To::RunCancelled,
        From::RunTerminated { request } => To::RunTerminated(self::request(request)),
    })
}

/// A time in exactly the form that is written: what is read is written again byte for byte.
pub(super) fn time(text: &str) -> Result<DateTime<Utc>, String> {
    let at = text.parse::<DateTime<Utc>>().ok().filter(|at| freeze::time(*at) == text);
    at.ok_or_else(|| format!("`{text}` is not a time like 2026-01-01T00:00:00.000000Z"))
}

fn uuid(text: &str) -> Result<Uuid, String> {
    let uuid = Uuid::parse_str(text).ok().filter(|uuid| uuid.to_string() == text);
    uuid.ok_or_else(|| format!("`{text}` is not a UUID in small letters with hyphens"))
}

fn run(text: String) -> Result<RunId, String> {
    RunId::new(text).map_err(|error| error.to_string())
}

fn cause(cause: v1::Cause) -> Cause {
    match cause {
        v1::Cause::Started => Cause::Started,
        v1::Cause::ContinuedAsNew => Cause::ContinuedAsNew,
        v1::Cause::Restarted => Cause::Restarted,
    }
}

pub(super) fn message(message: v1::Message) -> Result<domain::Message, String> {
    use domain::MessageBody as To;
    use v1::MessageBody as From;
    let body = match message.body {
        From::Signal { name, payload, from, request } => To::Signal {
            name,
            payload: extract(&payload)?,
            from: from.map(run).transpose()?,
            request: request.map(self::request),
        },
        From::ChildEnded { run, outcome } => To::ChildEnded { run: self::run(run)?, outcome: self::outcome(outcome)? },
        From::Pause(request) => To::Pause(self::request(request)),
        From::Resume(request) => To::Resume(self::request(request)),
        From::Cancel(request) => To::Cancel(self::request(request)),
        From::Terminate(request) => To::Terminate(self::request(request)),
        From::Reconcile { landed, output, request } => {
            let output = output.as_deref().map(extract).transpose()?;
            To::Reconcile { landed, output, request: self::request(request) }
        }
    };
    Ok(domain::Message { seq: message.seq, at: time(&message.at)?, body })
}

fn outcome(outcome: v1::Outcome) -> Result<domain::Outcome, String> {
    Ok(match outcome {
        v1::Outcome::Completed(output) => domain::Outcome::Completed(extract(&output)?),
        v1::Outcome::Failed(failure) => domain::Outcome::Failed(self::failure(failure)?),
        v1::Outcome::Cancelled => domain::Outcome::Cancelled,
    })
}

fn failure(v1::Failure { kind, message, until }: v1::Failure) -> Result<Failure, String> {
    let kind = match (kind, until) {
        (v1::FailureKind::Retryable, None) => FailureKind::Retryable,
        (v1::FailureKind::Terminal, None) => FailureKind::Terminal,
        (v1::FailureKind::Cancelled, None) => FailureKind::Cancelled,
        (v1::FailureKind::Machine, None) => FailureKind::Machine,
        (v1::FailureKind::RateLimited, Some(until)) => FailureKind::RateLimited { until: time(&until)? },
        (v1::FailureKind::RateLimited, None) => return Err("a failure is `rate_limited` without `until`".into()),
        (_, Some(_)) => return Err("only failures that are `rate_limited` have `until`".into()),
    };
    Ok(Failure { kind, message })
}

fn request(v1::Request { by, why }: v1::Request) -> domain::Request {
    domain::Request { by, why }
}
