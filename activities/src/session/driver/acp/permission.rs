//! The answers to the requests of an agent.

use longhaul_workflows::settings::ToolKind;
use serde_json::{Value, json};

use super::super::AgentEvent;
use super::super::event::text;
use super::reader::AcpReader;

/// The code of a method that is not offered.
const NO_METHOD: i64 = -32601;

impl AcpReader {
    /// A request of the agent.
    pub(super) fn asked(&mut self, id: &Value, method: &str, params: &Value) -> Vec<AgentEvent> {
        if method != "session/request_permission" {
            let error = json!({ "code": NO_METHOD, "message": format!("no method {method}") });
            self.send(json!({ "jsonrpc": "2.0", "id": id, "error": error }));
            return Vec::new();
        }
        let mut events = self.turn.message();
        let call = &params["toolCall"];
        events.extend(self.tools.asked(call));
        let (tool, kind) = self.tools.named(&text(call, "/toolCallId"));
        let is_allowed = self
            .dialogue
            .as_ref()
            .is_none_or(|dialogue| dialogue.agent.acp.allow.contains(&ToolKind::named(&kind)));
        let option = option(&params["options"], is_allowed);
        let outcome = option.as_ref().map_or_else(
            || json!({ "outcome": "cancelled" }),
            |option| json!({ "outcome": "selected", "optionId": option }),
        );
        self.send(json!({ "jsonrpc": "2.0", "id": id, "result": { "outcome": outcome } }));
        // A log has requests only; the transcript shows the call.
        if self.dialogue.is_some() {
            events.push(if is_allowed && option.is_some() {
                AgentEvent::ToolGranted { id: tool, name: kind }
            } else {
                self.tools.refuse(&tool);
                let reason = format!("`{kind}` is not in `allow` of [agent.acp]");
                AgentEvent::ToolRefused { id: tool, name: kind, reason }
            });
        }
        events
    }
}

/// The option that allows a call once, or refuses it.
fn option(options: &Value, is_allowed: bool) -> Option<String> {
    let kinds =
        if is_allowed { ["allow_once", "allow_always"] } else { ["reject_once", "reject_always"] };
    let of = |kind: &str| options.as_array()?.iter().find(|option| option["kind"] == kind);
    let found = kinds.iter().find_map(|kind| of(kind))?;
    Some(text(found, "/optionId"))
}
