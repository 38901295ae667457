//! The updates of a session: text, tool calls, and the filled part of the window.

use std::collections::BTreeMap;

use longhaul_workflows::contracts::{Usage, WindowUse};
use serde_json::Value;

use super::super::AgentEvent;
use super::super::event::{micros, number, summary, text};

/// The output of a turn so far.
#[derive(Debug, Default)]
pub(super) struct Turn {
    /// The begin of a message, which comes in pieces, and its id.
    text: String,
    message: String,
    /// The last whole message.
    pub(super) last: String,
    pub(super) window: Option<WindowUse>,
    usage: Usage,
    cost_micros: Option<u64>,
    /// The cost that the agent stated before the turn: that of earlier processes.
    earlier_micros: u64,
    /// Whether the agent says that its conversation is broken.
    pub(super) is_broken: bool,
}

impl Turn {
    /// An update of an earlier conversation that is loaded.
    pub(super) fn before(&mut self, update: &Value) {
        if let Some(cost) = cost(update) {
            self.earlier_micros = cost;
        }
    }

    pub(super) fn update(&mut self, update: &Value) -> Vec<AgentEvent> {
        match text(update, "/sessionUpdate").as_str() {
            "agent_message_chunk" => self.chunk(update),
            "agent_thought_chunk" | "plan" => vec![AgentEvent::Answering],
            "usage_update" => {
                let used = number(update, "/used");
                let size = number(update, "/size");
                self.window = Some(WindowUse { used, size }).filter(|_| size > 0);
                let mut events: Vec<_> = self.window.map(AgentEvent::Window).into_iter().collect();
                if let Some(cost) = cost(update) {
                    self.cost_micros = Some(cost.saturating_sub(self.earlier_micros));
                    events.push(self.used(self.usage));
                }
                events
            }
            "session_info_update" => {
                let status = update.pointer("/_meta/codex/threadStatus/type");
                self.is_broken = status.map_or(self.is_broken, |status| status == "systemError");
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    fn chunk(&mut self, update: &Value) -> Vec<AgentEvent> {
        let message = text(update, "/messageId");
        let mut events = Vec::new();
        if message != self.message {
            events = self.message();
            self.message = message;
        }
        self.text += &text(update, "/content/text");
        events.push(AgentEvent::Answering);
        events
    }

    /// The message that is complete when something else follows.
    pub(super) fn message(&mut self) -> Vec<AgentEvent> {
        if self.text.trim().is_empty() {
            return Vec::new();
        }
        self.last = std::mem::take(&mut self.text);
        vec![AgentEvent::Text(self.last.clone())]
    }

    pub(super) fn used(&mut self, usage: Usage) -> AgentEvent {
        self.usage = usage;
        AgentEvent::Usage { usage, cost_micros: self.cost_micros, turns: None }
    }
}

/// A cost in millionths of a US dollar; other currencies are not counted.
fn cost(update: &Value) -> Option<u64> {
    let is_dollar = update.pointer("/cost/currency").is_some_and(|it| it == "USD");
    micros(update, "/cost/amount").filter(|cost| is_dollar && *cost > 0)
}

/// The tool calls of a session.
#[derive(Debug, Default)]
pub(super) struct Tools {
    calls: BTreeMap<String, Call>,
    /// The request that resumes a conversation, if the agent has one.
    pub(super) resume: Option<&'static str>,
    /// Whether the agent connects to MCP servers over HTTP.
    pub(super) takes_http: bool,
}

/// A tool call that has not ended.
#[derive(Debug, Default)]
struct Call {
    kind: String,
    title: String,
    input: Value,
    /// Whether its begin was reported. At first only the name of the tool is known.
    is_reported: bool,
    is_refused: bool,
}

impl Tools {
    /// Whether a call has not ended.
    pub(super) fn are_open(&self) -> bool {
        !self.calls.is_empty()
    }

    /// The id of a call, and its kind.
    pub(super) fn named(&self, id: &str) -> (String, String) {
        let kind = self.calls.get(id).map(|call| call.kind.clone());
        (id.to_owned(), kind.unwrap_or_else(|| "other".into()))
    }

    /// The agent asks for a call, which it may not have reported before.
    pub(super) fn asked(&mut self, call: &Value) -> Vec<AgentEvent> {
        self.note(call);
        self.begin(&text(call, "/toolCallId")).into_iter().collect()
    }

    /// The call was refused; its end is not reported again.
    pub(super) fn refuse(&mut self, id: &str) {
        if let Some(call) = self.calls.get_mut(id) {
            call.is_refused = true;
        }
    }

    pub(super) fn update(&mut self, update: &Value, turn: &mut Turn) -> Vec<AgentEvent> {
        let name = text(update, "/sessionUpdate");
        if !["tool_call", "tool_call_update"].contains(&name.as_str()) {
            return Vec::new();
        }
        let mut events = turn.message();
        let id = text(update, "/toolCallId");
        let status = text(update, "/status");
        let has_ended = ["completed", "failed"].contains(&status.as_str());
        if name == "tool_call_update" && !has_ended && !self.calls.contains_key(&id) {
            // It has ended before.
            return events;
        }
        self.note(update);
        let call = &self.calls[&id];
        let has_input = call.input.as_object().is_some_and(|input| !input.is_empty());
        if has_ended || status == "in_progress" || (has_input && status != "pending") {
            events.extend(self.begin(&id));
        }
        events.push(AgentEvent::Answering);
        if has_ended {
            let call = self.calls.remove(&id).unwrap_or_default();
            if !call.is_refused {
                let ok = status == "completed";
                events.push(AgentEvent::ToolEnded { id, output: output(update), ok });
            }
        }
        events
    }

    /// Applies an update of a call.
    fn note(&mut self, update: &Value) {
        let call = self.calls.entry(text(update, "/toolCallId")).or_default();
        for (field, pointer) in [(&mut call.kind, "/kind"), (&mut call.title, "/title")] {
            let stated = text(update, pointer);
            if !stated.is_empty() {
                *field = stated;
            }
        }
        if call.kind.is_empty() {
            call.kind = "other".into();
        }
        if let Some(input) = update.get("rawInput").filter(|input| input.is_object()) {
            call.input = input.clone();
        }
    }

    fn begin(&mut self, id: &str) -> Option<AgentEvent> {
        let call = self.calls.get_mut(id).filter(|call| !call.is_reported)?;
        call.is_reported = true;
        let has_input = call.input.as_object().is_some_and(|input| !input.is_empty());
        let input = if has_input { summary(&call.input) } else { call.title.clone() };
        Some(AgentEvent::ToolBegan { id: id.to_owned(), name: call.kind.clone(), input })
    }
}

/// The output of a call: its text, or the result of the tool.
fn output(update: &Value) -> String {
    let parts = update["content"].as_array().into_iter().flatten();
    let texts: Vec<String> =
        parts.map(|part| text(part, "/content/text")).filter(|text| !text.is_empty()).collect();
    match (texts.is_empty(), &update["rawOutput"]) {
        (false, _) => texts.join("\n"),
        (true, Value::String(output)) => output.clone(),
        (true, raw) => text(raw, "/output") + &text(raw, "/error"),
    }
}
