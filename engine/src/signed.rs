//! Signals that a person sends: beside their content they say who, and why.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::event::{MessageBody, Request};
use crate::id::RunId;
use crate::payload::Payload;

/// A signal, out of its envelope.
#[derive(Debug, Clone, PartialEq)]
pub struct Signal {
    /// Its name.
    pub name: String,
    /// Its content.
    pub payload: Payload,
    /// The run that sent it, if a run did.
    pub from: Option<RunId>,
    /// Who sent it, and why, if a person did and it was recorded.
    pub request: Option<Request>,
}

/// How one lies in a log: the content of a signal with a name of our own, so that the stored shapes stay as they are.
#[derive(Serialize, Deserialize)]
struct Envelope {
    name: String,
    payload: Value,
    request: Request,
}

impl MessageBody {
    const SIGNED: &'static str = "longhaul.signed";

    /// A signal of somebody who says who they are, and why they send it.
    pub fn signed(name: impl Into<String>, payload: Value, request: Request) -> Self {
        let envelope = Envelope { name: name.into(), payload, request };
        Self::Signal { name: Self::SIGNED.into(), payload: Payload::of(&envelope), from: None }
    }

    /// The signal that this is, signed or not.
    pub fn as_signal(&self) -> Option<Signal> {
        let Self::Signal { name, payload, from } = self else { return None };
        let envelope = (name == Self::SIGNED).then(|| payload.read::<Envelope>().ok()).flatten();
        Some(match envelope {
            Some(Envelope { name, payload, request }) => {
                Signal { name, payload: Payload::of(&payload), from: from.clone(), request: Some(request) }
            }
            None => Signal { name: name.clone(), payload: payload.clone(), from: from.clone(), request: None },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::Received;
    use crate::event::Message;

    #[test]
    fn a_workflow_receives_what_is_in_the_envelope() {
        let request = Request { by: "ann".into(), why: "budget".into() };
        let body = MessageBody::signed("go", serde_json::json!({"b": 1, "a": [2.5]}), request.clone());
        assert!(body.is_for_workflow());
        assert_eq!(body.as_signal().and_then(|signal| signal.request), Some(request));
        let message = Message { seq: 1, at: chrono::DateTime::UNIX_EPOCH, body };
        let payload = Payload::from_bytes(&br#"{"b":1,"a":[2.5]}"#[..]);
        assert_eq!(Received::from_message(message), Some(Received::Signal { name: "go".into(), payload, from: None }));
    }
}
