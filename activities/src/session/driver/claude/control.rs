//! The control protocol of `--input-format stream-json`: the prompt, and the end of a turn between
//! two actions.
//!
//! Claude Code calls a hook of the type `PostToolBatch` when all tools of an answer have ended, and
//! waits for the reply. A reply with `"continue": false` ends the turn there.

use serde_json::{Value, json};

use super::super::event::text;
use super::super::{Dialogue, Line};

/// The requests, by id.
const INITIALIZE: &str = "initialize";
const CONTEXT: &str = "context";
const INTERRUPT: &str = "interrupt";

/// How far the exchange is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Opening,
    /// The prompt was sent.
    Working,
    /// The turn ends after the tools at work.
    Stopping,
}

/// The side of Longhaul.
#[derive(Debug)]
pub(super) struct Control {
    prompt: String,
    stage: Stage,
    lines: Vec<Line>,
}

impl Control {
    pub(super) fn new(dialogue: Dialogue) -> Self {
        let hooks = json!({ "PostToolBatch": [{ "hookCallbackIds": ["batch"] }] });
        let first = request(INITIALIZE, &json!({ "subtype": "initialize", "hooks": hooks }));
        Self { prompt: dialogue.prompt, stage: Stage::Opening, lines: vec![first] }
    }

    /// A response to a request of Longhaul.
    pub(super) fn responded(&mut self, event: &Value) {
        let id = text(event, "/response/request_id");
        if self.stage != Stage::Opening {
            return;
        }
        // The window is read before the prompt, because requests wait for the end of a turn.
        // Versions that do not state their version here call the model to count its tokens.
        let is_stated = event.pointer("/response/response/claude_code_version").is_some();
        if id == INITIALIZE && is_stated {
            let context = json!({ "subtype": "get_context_usage", "detail": "summary" });
            self.lines.push(request(CONTEXT, &context));
            return;
        }
        let content = json!([{ "type": "text", "text": self.prompt }]);
        self.lines.push(line(&json!({
            "type": "user",
            "message": { "role": "user", "content": content },
            "parent_tool_use_id": null,
            "session_id": "",
        })));
        self.stage = Stage::Working;
    }

    /// A request of the agent.
    pub(super) fn requested(&mut self, event: &Value) {
        let id = text(event, "/request_id");
        let subtype = text(event, "/request/subtype");
        if subtype != "hook_callback" {
            let error = format!("no request {subtype}");
            let response = json!({ "subtype": "error", "request_id": id, "error": error });
            self.lines.push(line(&json!({ "type": "control_response", "response": response })));
            return;
        }
        let is_of_subagent = event.pointer("/request/input/agent_id").is_some_and(Value::is_string);
        let answer = if self.stage == Stage::Stopping && !is_of_subagent {
            json!({ "continue": false, "stopReason": "a fresh session continues" })
        } else {
            json!({})
        };
        let response = json!({ "subtype": "success", "request_id": id, "response": answer });
        self.lines.push(line(&json!({ "type": "control_response", "response": response })));
    }

    pub(super) fn stop_at_boundary(&mut self) {
        if self.stage == Stage::Working {
            self.stage = Stage::Stopping;
        }
    }

    pub(super) fn take_lines(&mut self) -> Vec<Line> {
        std::mem::take(&mut self.lines)
    }

    pub(super) fn interrupt(&self) -> Option<Line> {
        let is_working = matches!(self.stage, Stage::Working | Stage::Stopping);
        is_working.then(|| request(INTERRUPT, &json!({ "subtype": "interrupt" })))
    }
}

/// The size of the window, if a response states it.
pub(super) fn window(event: &Value) -> Option<u64> {
    let response = event.get("response").filter(|it| it["request_id"] == CONTEXT)?;
    response.pointer("/response/maxTokens")?.as_u64().filter(|size| *size > 0)
}

fn request(id: &str, request: &Value) -> Line {
    line(&json!({ "type": "control_request", "request_id": id, "request": request }))
}

fn line(message: &Value) -> Line {
    message.to_string() + "\n"
}
