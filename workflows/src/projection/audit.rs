//! Requests of people to a run: recorded in its history, or still in its mailbox.

use chrono::{DateTime, Utc};
use longhaul_engine::{Event, EventKind, Message, MessageBody, Payload, Position, RequestedBy};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::backlog::FeatureId;
use crate::feature::Approval;
use crate::project::{Forked, Rollback, signal};

/// A message to a run, without its content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Action {
    /// `pause`, `resume`, `cancel`, `terminate`, `reconcile_happened`, `reconcile_not_happened`,
    /// `approve`, `deny`, `child_ended`, or the name of a signal.
    pub what: String,
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
    const CANCEL: &'static str = "cancel";
    const TERMINATE: &'static str = "terminate";

    fn by(what: &str, request: RequestedBy) -> Self {
        Self { what: what.to_owned(), feature: None, by: request.by, why: request.why }
    }

    fn of(body: &MessageBody) -> Self {
        let what = match body {
            MessageBody::Signal { name, payload, .. } if name == Approval::SIGNAL => {
                if payload.read::<Approval>().is_ok_and(|approval| approval.approved) {
                    "approve"
                } else {
                    "deny"
                }
            }
            MessageBody::Signal { name, .. } if name == signal::HALT => Self::CANCEL,
            MessageBody::Signal { name, .. } => name,
            MessageBody::ChildEnded { .. } => "child_ended",
            MessageBody::Pause(_) => "pause",
            MessageBody::Resume(_) => "resume",
            MessageBody::Cancel(_) => Self::CANCEL,
            MessageBody::Terminate(_) => Self::TERMINATE,
            MessageBody::Reconcile { happened, .. } => Self::reconcile(*happened),
        };
        Self { feature: feature(body), ..Self::by(what, request(body).unwrap_or_default()) }
    }

    fn reconcile(happened: bool) -> &'static str {
        if happened { "reconcile_happened" } else { "reconcile_not_happened" }
    }

    /// The person or program that made the request.
    pub fn request(&self) -> RequestedBy {
        RequestedBy { by: self.by.clone(), why: self.why.clone() }
    }
}

impl std::fmt::Display for Action {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.what)?;
        if !self.by.is_empty() {
            write!(formatter, " by {}", self.by)?;
        }
        if self.why.is_empty() { Ok(()) } else { write!(formatter, ": {}", self.why) }
    }
}

impl AuditEntry {
    /// The request in an event, if any.
    pub fn of(event: &Event) -> Option<Self> {
        let by = |what: &str, request: &RequestedBy| Action::by(what, request.clone());
        let action = match &event.kind {
            EventKind::RunPaused(request) => by("pause", request),
            EventKind::RunTerminated(request) => by(Action::TERMINATE, request),
            EventKind::RunResumed(request) => by("resume", request),
            EventKind::CancelDelivered { request, .. } => by(Action::CANCEL, request),
            EventKind::RunReconciled { happened, request, .. } => {
                by(Action::reconcile(*happened), request)
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
        match self.action.what.as_str() {
            Action::TERMINATE => Some("terminated"),
            Action::CANCEL => Some("cancelled"),
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
        signal::BLOCK => payload.read::<(FeatureId, String)>().ok()?.0,
        _ => return None,
    };
    Some(feature.to_string())
}
