//! What people told a run: what, who, and why.

use chrono::{DateTime, Utc};
use longhaul_engine::{Event, EventKind, MessageBody, Payload, Position, RequestedBy};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::words;

/// Something that a person told a run, and that it has taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Told {
    /// The position of its event in the history.
    pub position: Position,
    /// When it was recorded.
    pub at: DateTime<Utc>,
    /// `pause`, `resume`, `cancel`, `terminate`, `reconcile`, or the name of a signal.
    pub what: String,
    /// Who.
    pub by: String,
    /// Empty if they did not say.
    pub why: String,
}

impl Told {
    const TERMINATE: &'static str = "terminate";
    const CANCEL: &'static str = "cancel";

    /// What an event says that somebody told the run.
    pub(super) fn of(event: &Event) -> Option<Self> {
        let (what, request) = match &event.kind {
            EventKind::RunPaused(request) => ("pause".to_owned(), request.clone()),
            EventKind::RunTerminated(request) => (Self::TERMINATE.to_owned(), request.clone()),
            EventKind::RunResumed(request) => ("resume".to_owned(), request.clone()),
            EventKind::CancelDelivered { request, .. } => (Self::CANCEL.to_owned(), request.clone()),
            EventKind::RunReconciled { request, .. } => ("reconcile".to_owned(), request.clone()),
            EventKind::MessageReceived { message: Some(message), .. } => (what(&message.body), request(&message.body)?),
            _ => return None,
        };
        Some(Self { position: event.position, at: event.at, what, by: request.by, why: request.why })
    }
}

/// Who ended a run, and why: `terminated by ann: enough`. `None` if nobody did.
pub fn ended_by(history: &[Event]) -> Option<String> {
    history.iter().rev().filter_map(Told::of).find_map(|Told { what, by, why, .. }| {
        let ended = match what.as_str() {
            Told::TERMINATE => "terminated",
            Told::CANCEL => "cancelled",
            _ => return None,
        };
        Some(format!("{ended} {}", words::by(&RequestedBy { by, why })))
    })
}

/// What a message is, in a word.
pub(super) fn what(body: &MessageBody) -> String {
    match body {
        MessageBody::Signal { name, .. } => name.clone(),
        MessageBody::ChildEnded { .. } => "child_ended".into(),
        MessageBody::Pause(_) => "pause".into(),
        MessageBody::Resume(_) => "resume".into(),
        MessageBody::Cancel(_) => "cancel".into(),
        MessageBody::Terminate(_) => Told::TERMINATE.into(),
        MessageBody::Reconcile { .. } => "reconcile".into(),
    }
}

/// The person behind a message, if there is one.
pub(super) fn request(body: &MessageBody) -> Option<RequestedBy> {
    match body {
        MessageBody::Pause(request)
        | MessageBody::Resume(request)
        | MessageBody::Cancel(request)
        | MessageBody::Terminate(request)
        | MessageBody::Reconcile { request, .. } => Some(request.clone()),
        MessageBody::Signal { payload, from: None, request, .. } => request.clone().or_else(|| signature(payload)),
        MessageBody::Signal { .. } | MessageBody::ChildEnded { .. } => None,
    }
}

/// Some signals carry it in their content.
fn signature(payload: &Payload) -> Option<RequestedBy> {
    #[derive(Deserialize)]
    struct Signature {
        by: String,
        #[serde(default)]
        why: String,
    }
    let content: Value = payload.read().ok()?;
    let signature = content.get("request").unwrap_or(&content);
    let Signature { by, why } = Signature::deserialize(signature).ok()?;
    Some(RequestedBy { by, why })
}
