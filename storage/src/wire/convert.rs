//! Conversions between the engine's types and the wire types. The caller supplies the
//! representation of payloads, the only part that can fail.

use longhaul_engine::event as domain;
use longhaul_engine::{Payload, Position, Pruned, Status, Summary};

use super::v1::{self, Time};

impl<P> v1::Event<P> {
    pub(crate) fn encode<E>(
        event: domain::Event,
        payload: &mut impl FnMut(Payload) -> Result<P, E>,
    ) -> Result<Self, E> {
        Ok(Self { at: event.at.into(), kind: v1::EventKind::encode(event.kind, payload)? })
    }

    pub(crate) fn decode<E>(
        self,
        position: Position,
        payload: &mut impl FnMut(P) -> Result<Payload, E>,
    ) -> Result<domain::Event, E> {
        Ok(domain::Event { position, at: self.at.0, kind: self.kind.decode(payload)? })
    }
}

impl<P> v1::EventKind<P> {
    pub(crate) fn encode<E>(
        kind: domain::EventKind,
        payload: &mut impl FnMut(Payload) -> Result<P, E>,
    ) -> Result<Self, E> {
        use domain::EventKind as From;
        Ok(match kind {
            From::RunStarted { workflow, input, parent, labels, cause } => {
                Self::RunStarted { workflow, input: payload(input)?, parent, labels, cause }
            }
            From::ActivityStarted { slot, name, input, attempt } => {
                Self::ActivityStarted { slot, name, input: payload(input)?, attempt }
            }
            From::ActivityProgressed { slot, details } => {
                Self::ActivityProgressed { slot, details: payload(details)? }
            }
            From::ActivityFailed { slot, name, input, attempt, failure, retry_at } => {
                let input = payload(input)?;
                let retry_at = retry_at.map(Time::from);
                Self::ActivityFailed { slot, name, input, attempt, failure, retry_at }
            }
            From::ActivityCompleted { slot, name, input, attempt, output } => {
                Self::ActivityCompleted {
                    slot,
                    name,
                    input: payload(input)?,
                    attempt,
                    output: payload(output)?,
                }
            }
            From::ChildStarted { command, run, workflow, input } => {
                Self::ChildStarted { command, run, workflow, input: payload(input)? }
            }
            From::MessageAwaited { command, deadline } => {
                Self::MessageAwaited { command, deadline: deadline.map(Time::from) }
            }
            From::MessageReceived { command, message } => {
                let message =
                    message.map(|message| v1::Message::encode(message, payload)).transpose()?;
                Self::MessageReceived { command, message }
            }
            From::SignalSent { command, to, name, payload: content } => {
                Self::SignalSent { command, to, name, payload: payload(content)? }
            }
            From::CancelSent { command, to, request } => Self::CancelSent { command, to, request },
            From::TimerStarted { command, fire_at } => {
                Self::TimerStarted { command, fire_at: fire_at.into() }
            }
            From::TimerFired { command } => Self::TimerFired { command },
            From::TimeRead { command } => Self::TimeRead { command },
            From::UuidDrawn { command, uuid } => Self::UuidDrawn { command, uuid },
            From::VersionMarked { command, change, version } => {
                Self::VersionMarked { command, change, version }
            }
            From::StatusPublished { command, key, value } => {
                Self::StatusPublished { command, key, value: payload(value)? }
            }
            From::CancelDelivered { command, digest, request } => {
                Self::CancelDelivered { command, digest, request }
            }
            From::RunPaused(request) => Self::RunPaused { request },
            From::RunResumed(request) => Self::RunResumed { request },
            From::RunParked { slot, effect } => Self::RunParked { slot, effect },
            From::RunReconciled { slot, happened, request } => {
                Self::RunReconciled { slot, happened, request }
            }
            From::RunCompleted { output } => Self::RunCompleted { output: payload(output)? },
            From::RunFailed { failure } => Self::RunFailed { failure },
            From::RunCancelled => Self::RunCancelled {},
            From::RunTerminated(request) => Self::RunTerminated { request },
        })
    }

    pub(crate) fn decode<E>(
        self,
        payload: &mut impl FnMut(P) -> Result<Payload, E>,
    ) -> Result<domain::EventKind, E> {
        use domain::EventKind as To;
        Ok(match self {
            Self::RunStarted { workflow, input, parent, labels, cause } => {
                To::RunStarted { workflow, input: payload(input)?, parent, labels, cause }
            }
            Self::ActivityStarted { slot, name, input, attempt } => {
                To::ActivityStarted { slot, name, input: payload(input)?, attempt }
            }
            Self::ActivityProgressed { slot, details } => {
                To::ActivityProgressed { slot, details: payload(details)? }
            }
            Self::ActivityFailed { slot, name, input, attempt, failure, retry_at } => {
                let input = payload(input)?;
                let retry_at = retry_at.map(|at| at.0);
                To::ActivityFailed { slot, name, input, attempt, failure, retry_at }
            }
            Self::ActivityCompleted { slot, name, input, attempt, output } => {
                To::ActivityCompleted {
                    slot,
                    name,
                    input: payload(input)?,
                    attempt,
                    output: payload(output)?,
                }
            }
            Self::ChildStarted { command, run, workflow, input } => {
                To::ChildStarted { command, run, workflow, input: payload(input)? }
            }
            Self::MessageAwaited { command, deadline } => {
                To::MessageAwaited { command, deadline: deadline.map(|at| at.0) }
            }
            Self::MessageReceived { command, message } => To::MessageReceived {
                command,
                message: message.map(|message| message.decode(payload)).transpose()?,
            },
            Self::SignalSent { command, to, name, payload: content } => {
                To::SignalSent { command, to, name, payload: payload(content)? }
            }
            Self::CancelSent { command, to, request } => To::CancelSent { command, to, request },
            Self::TimerStarted { command, fire_at } => {
                To::TimerStarted { command, fire_at: fire_at.0 }
            }
            Self::TimerFired { command } => To::TimerFired { command },
            Self::TimeRead { command } => To::TimeRead { command },
            Self::UuidDrawn { command, uuid } => To::UuidDrawn { command, uuid },
            Self::VersionMarked { command, change, version } => {
                To::VersionMarked { command, change, version }
            }
            Self::StatusPublished { command, key, value } => {
                To::StatusPublished { command, key, value: payload(value)? }
            }
            Self::CancelDelivered { command, digest, request } => {
                To::CancelDelivered { command, digest, request }
            }
            Self::RunPaused { request } => To::RunPaused(request),
            Self::RunResumed { request } => To::RunResumed(request),
            Self::RunParked { slot, effect } => To::RunParked { slot, effect },
            Self::RunReconciled { slot, happened, request } => {
                To::RunReconciled { slot, happened, request }
            }
            Self::RunCompleted { output } => To::RunCompleted { output: payload(output)? },
            Self::RunFailed { failure } => To::RunFailed { failure },
            Self::RunCancelled {} => To::RunCancelled,
            Self::RunTerminated { request } => To::RunTerminated(request),
        })
    }
}

impl<P> v1::Message<P> {
    pub(crate) fn encode<E>(
        message: domain::Message,
        payload: &mut impl FnMut(Payload) -> Result<P, E>,
    ) -> Result<Self, E> {
        let domain::Message { seq, at, body } = message;
        Ok(Self { seq, at: at.into(), body: v1::MessageBody::encode(body, payload)? })
    }

    pub(crate) fn decode<E>(
        self,
        payload: &mut impl FnMut(P) -> Result<Payload, E>,
    ) -> Result<domain::Message, E> {
        Ok(domain::Message { seq: self.seq, at: self.at.0, body: self.body.decode(payload)? })
    }
}

impl<P> v1::MessageBody<P> {
    pub(crate) fn encode<E>(
        body: domain::MessageBody,
        payload: &mut impl FnMut(Payload) -> Result<P, E>,
    ) -> Result<Self, E> {
        use domain::MessageBody as From;
        Ok(match body {
            From::Signal { name, payload: content, from, request } => {
                Self::Signal { name, payload: payload(content)?, from, request }
            }
            From::ChildEnded { run, outcome } => {
                Self::ChildEnded { run, outcome: v1::Outcome::encode(outcome, payload)? }
            }
            From::Pause(request) => Self::Pause(request),
            From::Resume(request) => Self::Resume(request),
            From::Cancel(request) => Self::Cancel(request),
            From::Terminate(request) => Self::Terminate(request),
            From::Reconcile { happened, output, request } => {
                Self::Reconcile { happened, output: payload(output)?, request }
            }
        })
    }

    pub(crate) fn decode<E>(
        self,
        payload: &mut impl FnMut(P) -> Result<Payload, E>,
    ) -> Result<domain::MessageBody, E> {
        use domain::MessageBody as To;
        Ok(match self {
            Self::Signal { name, payload: content, from, request } => {
                To::Signal { name, payload: payload(content)?, from, request }
            }
            Self::ChildEnded { run, outcome } => {
                To::ChildEnded { run, outcome: outcome.decode(payload)? }
            }
            Self::Pause(request) => To::Pause(request),
            Self::Resume(request) => To::Resume(request),
            Self::Cancel(request) => To::Cancel(request),
            Self::Terminate(request) => To::Terminate(request),
            Self::Reconcile { happened, output, request } => {
                To::Reconcile { happened, output: payload(output)?, request }
            }
        })
    }
}

impl<P> v1::Outcome<P> {
    fn encode<E>(
        outcome: domain::Outcome,
        payload: &mut impl FnMut(Payload) -> Result<P, E>,
    ) -> Result<Self, E> {
        Ok(match outcome {
            domain::Outcome::Completed(output) => Self::Completed(payload(output)?),
            domain::Outcome::Failed(failure) => Self::Failed(failure),
            domain::Outcome::Cancelled => Self::Cancelled,
        })
    }

    fn decode<E>(
        self,
        payload: &mut impl FnMut(P) -> Result<Payload, E>,
    ) -> Result<domain::Outcome, E> {
        Ok(match self {
            Self::Completed(output) => domain::Outcome::Completed(payload(output)?),
            Self::Failed(failure) => domain::Outcome::Failed(failure),
            Self::Cancelled => domain::Outcome::Cancelled,
        })
    }
}

impl From<Summary> for v1::Summary {
    fn from(summary: Summary) -> Self {
        let Summary { workflow, parent, labels, status, origin, started_at, ended_at, pruned } =
            summary;
        let status = match status {
            Status::Running => v1::Status::Running,
            Status::Waiting { until, machine } => {
                v1::Status::Waiting { until: until.map(Time::from), machine }
            }
            Status::Paused(request) => v1::Status::Paused(request),
            Status::Parked(effect) => v1::Status::Parked(effect),
            Status::Completed => v1::Status::Completed,
            Status::Failed(message) => v1::Status::Failed(message),
            Status::Cancelled => v1::Status::Cancelled,
        };
        let pruned = pruned.map(|Pruned { events, at }| v1::Pruned { events, at: at.into() });
        let started_at = started_at.into();
        let ended_at = ended_at.map(Time::from);
        Self { workflow, parent, labels, status, origin, started_at, ended_at, pruned }
    }
}

impl From<v1::Summary> for Summary {
    fn from(summary: v1::Summary) -> Self {
        let v1::Summary { workflow, parent, labels, status, origin, started_at, ended_at, pruned } =
            summary;
        let status = match status {
            v1::Status::Running => Status::Running,
            v1::Status::Waiting { until, machine } => {
                Status::Waiting { until: until.map(|at| at.0), machine }
            }
            v1::Status::Paused(request) => Status::Paused(request),
            v1::Status::Parked(effect) => Status::Parked(effect),
            v1::Status::Completed => Status::Completed,
            v1::Status::Failed(message) => Status::Failed(message),
            v1::Status::Cancelled => Status::Cancelled,
        };
        let pruned = pruned.map(|v1::Pruned { events, at }| Pruned { events, at: at.0 });
        let started_at = started_at.0;
        let ended_at = ended_at.map(|at| at.0);
        Self { workflow, parent, labels, status, origin, started_at, ended_at, pruned }
    }
}
