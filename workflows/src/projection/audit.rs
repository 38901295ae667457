//! Requests of people to a run: recorded in its history, or still in its mailbox.

use chrono::{DateTime, Utc};
use longhaul_engine::{Event, EventKind, Message, MessageBody, Payload, Position, RequestedBy};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::feature::Approval;
use crate::project::{BlockRequest, Forked, Rollback, signal};

/// A message to a run, without its content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Action {
    /// The request.
    pub what: ActionKind,
    /// The feature concerned, if it was sent to the project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feature: Option<String>,
    /// The person or program that made the request; absent if unknown.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub by: String,
    /// The reason given; absent if none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
}

/// The kind of a request or message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ActionKind {
    /// Hold the run.
    Pause,
    /// Continue the run.
    Resume,
    /// End it in an orderly way.
    Cancel,
    /// End it at once.
    Terminate,
    /// An effect of unknown outcome happened.
    ReconcileHappened,
    /// An effect of unknown outcome did not happen.
    ReconcileNotHappened,
    /// Let a finished feature merge.
    Approve,
    /// Return a finished feature to its agent.
    Deny,
    /// A child run ended.
    ChildEnded,
    /// Another signal, by its name.
    #[serde(untagged)]
    Signal(String),
}

impl ActionKind {
    /// Whether it is the signal of this name.
    pub fn is_signal(&self, name: &str) -> bool {
        matches!(self, Self::Signal(signal) if signal == name)
    }

    fn reconcile(happened: bool) -> Self {
        if happened { Self::ReconcileHappened } else { Self::ReconcileNotHappened }
    }
}

impl std::fmt::Display for ActionKind {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::Pause => "pause",
            Self::Resume => "resume",
            Self::Cancel => "cancel",
            Self::Terminate => "terminate",
            Self::ReconcileHappened => "reconcile_happened",
            Self::ReconcileNotHappened => "reconcile_not_happened",
            Self::Approve => "approve",
            Self::Deny => "deny",
            Self::ChildEnded => "child_ended",
            Self::Signal(name) => name,
        })
    }
}

/// A request of a person that a run has received.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AuditEntry {
    /// The position of its event in the history.
    pub position: Position,
    /// The time of its recording.
    pub at: DateTime<Utc>,
    /// The request, the requester and the reason.
    #[serde(flatten)]
    pub action: Action,
}

/// A message that a run has not yet received.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MailboxEntry {
    /// When it was sent.
    pub at: DateTime<Utc>,
    /// The request, the sender and the reason.
    #[serde(flatten)]
    pub action: Action,
}

impl Action {
    fn by(what: ActionKind, request: RequestedBy) -> Self {
        Self { what, feature: None, by: request.by, why: request.why }
    }

    fn of(body: &MessageBody) -> Self {
        let what = match body {
            MessageBody::Signal { name, payload, .. } if name == Approval::SIGNAL => {
                if payload.read::<Approval>().is_ok_and(|approval| approval.approved) {
                    ActionKind::Approve
                } else {
                    ActionKind::Deny
                }
            }
            MessageBody::Signal { name, .. } if name == signal::HALT => ActionKind::Cancel,
            MessageBody::Signal { name, .. } => ActionKind::Signal(name.clone()),
            MessageBody::ChildEnded { .. } => ActionKind::ChildEnded,
            MessageBody::Pause(_) => ActionKind::Pause,
            MessageBody::Resume(_) => ActionKind::Resume,
            MessageBody::Cancel(_) => ActionKind::Cancel,
            MessageBody::Terminate(_) => ActionKind::Terminate,
            MessageBody::Reconcile { happened, .. } => ActionKind::reconcile(*happened),
        };
        Self { feature: feature(body), ..Self::by(what, request(body).unwrap_or_default()) }
    }

    /// The person or program that made the request.
    pub fn request(&self) -> RequestedBy {
        RequestedBy { by: self.by.clone(), why: self.why.clone() }
    }
}

impl std::fmt::Display for Action {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.what.fmt(formatter)?;
        if !self.by.is_empty() {
            write!(formatter, " by {}", self.by)?;
        }
        if self.why.is_empty() { Ok(()) } else { write!(formatter, ": {}", self.why) }
    }
}

impl AuditEntry {
    /// The request in an event, if any.
    pub fn of(event: &Event) -> Option<Self> {
        let by = |what, request: &RequestedBy| Action::by(what, request.clone());
        let action = match &event.kind {
            EventKind::RunPaused(request) => by(ActionKind::Pause, request),
            EventKind::RunTerminated(request) => by(ActionKind::Terminate, request),
            EventKind::RunResumed(request) => by(ActionKind::Resume, request),
            EventKind::CancelDelivered { request, .. } => by(ActionKind::Cancel, request),
            EventKind::RunReconciled { happened, request, .. } => {
                by(ActionKind::reconcile(*happened), request)
            }
            EventKind::MessageReceived { message: Some(message), .. }
                if request(&message.body).is_some() =>
            {
                Action::of(&message.body)
            }
            _ => return None,
        };
        Some(Self { position: event.position, at: event.at, action })
    }

    /// How it ended the run: `cancelled` or `terminated`.
    pub fn ended(&self) -> Option<&'static str> {
        match self.action.what {
            ActionKind::Terminate => Some("terminated"),
            ActionKind::Cancel => Some("cancelled"),
            _ => None,
        }
    }
}

impl MailboxEntry {
    /// A message.
    pub fn of(message: &Message) -> Self {
        Self { at: message.at, action: Action::of(&message.body) }
    }

    /// The requests to a run, and the reason why it is held, in a line; `None` if there is neither.
    pub fn remark(pending: &[Self], reason: Option<&str>) -> Option<String> {
        let pending = pending.iter().map(|entry| format!("pending: {}", entry.action));
        let parts: Vec<String> = pending.chain(reason.map(str::to_owned)).collect();
        (!parts.is_empty()).then(|| parts.join("; "))
    }

    /// The messages of people.
    pub fn of_people(mailbox: &[Message]) -> Vec<Self> {
        let is_of_person = |message: &&Message| {
            request(&message.body).is_some() || feature(&message.body).is_some()
        };
        mailbox.iter().filter(is_of_person).map(Self::of).collect()
    }
}

/// The sender of a message, if it is a person.
fn request(body: &MessageBody) -> Option<RequestedBy> {
    match body {
        MessageBody::Pause(request)
        | MessageBody::Resume(request)
        | MessageBody::Cancel(request)
        | MessageBody::Terminate(request)
        | MessageBody::Reconcile { request, .. } => Some(request.clone()),
        MessageBody::Signal { name, payload, from: None, request } => {
            request.clone().or_else(|| signature(name, payload))
        }
        MessageBody::Signal { .. } | MessageBody::ChildEnded { .. } => None,
    }
}

/// The person in the content of a signal: its run acts on it.
fn signature(name: &str, payload: &Payload) -> Option<RequestedBy> {
    match name {
        signal::HALT => payload.read().ok(),
        Forked::SIGNAL => Some(payload.read::<Forked>().ok()?.request),
        Rollback::SIGNAL => Some(payload.read::<Rollback>().ok()?.request),
        Approval::SIGNAL => {
            let Approval { by, why, .. } = payload.read().ok()?;
            Some(RequestedBy { by, why })
        }
        _ => None,
    }
}

/// The feature that a signal to a project concerns.
fn feature(body: &MessageBody) -> Option<String> {
    let MessageBody::Signal { name, payload, from: None, .. } = body else { return None };
    let feature = match name.as_str() {
        Forked::SIGNAL => payload.read::<Forked>().ok()?.feature,
        signal::UNBLOCK => payload.read().ok()?,
        signal::BLOCK => payload.read::<BlockRequest>().ok()?.feature,
        _ => return None,
    };
    Some(feature.to_string())
}
