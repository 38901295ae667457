//! The events of `stream-json`.

use std::collections::{BTreeMap, BTreeSet};

use longhaul_workflows::contracts::{AgentOutcome, Usage};
use serde_json::Value;

use super::super::event::{content, micros, millis, number, summary, text};
use super::super::{AgentEvent, Dialogue, End, Line, Reader, class_of_status};
use super::control::Control;
use super::end;
use super::window::Window;

/// Reads `stream-json`.
#[derive(Debug, Default)]
pub(super) struct ClaudeReader {
    control: Option<Control>,
    window: Window,
    /// Whether commands run in the background. The program waits for them, and a turn follows.
    has_background_work: bool,
    /// The usage by message. An event repeats it for each block of a message.
    messages: BTreeMap<String, Usage>,
    /// The number of messages.
    answers: u32,
    /// The usage and cost of finished turns.
    finished: Usage,
    cost_micros: u64,
    refused: BTreeSet<String>,
    /// The end of a usage window, from the events of a subscription.
    resets_at: Option<i64>,
    error: Option<String>,
}

impl Reader for ClaudeReader {
    fn line(&mut self, line: &str) -> Vec<AgentEvent> {
        let Some(event) = serde_json::from_str::<Value>(line).ok().filter(Value::is_object) else {
            return vec![AgentEvent::Note(line.to_owned())];
        };
        match text(&event, "/type").as_str() {
            "system" => self.system(&event),
            "assistant" => self.assistant(&event),
            "user" => user(&event),
            "result" => self.result(&event),
            "control_request" => {
                if let Some(control) = &mut self.control {
                    control.requested(&event);
                }
                Vec::new()
            }
            "control_response" => {
                self.window.stated(&event);
                if let Some(control) = &mut self.control {
                    control.responded(&event);
                }
                Vec::new()
            }
            "rate_limit_event" => {
                let info = event.get("rate_limit_info");
                let is_rejected = info.is_some_and(|info| text(info, "/status") == "rejected");
                if is_rejected {
                    self.resets_at =
                        info.and_then(|info| info.get("resetsAt")).and_then(Value::as_i64);
                }
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    fn replies(&mut self) -> Vec<Line> {
        self.control.as_mut().map(Control::take_lines).unwrap_or_default()
    }

    fn has_background_work(&self) -> bool {
        self.has_background_work
    }

    fn stop_at_boundary(&mut self) {
        if let Some(control) = &mut self.control {
            control.stop_at_boundary();
        }
    }

    fn cancel(&self) -> Option<Line> {
        self.control.as_ref()?.interrupt()
    }
}

impl ClaudeReader {
    /// A reader that speaks to the agent.
    pub(super) fn of(dialogue: Dialogue) -> Self {
        let window = Window::new(dialogue.agent.context.window_of(None));
        Self { window, control: Some(Control::new(dialogue)), ..Self::default() }
    }

    fn system(&mut self, event: &Value) -> Vec<AgentEvent> {
        match text(event, "/subtype").as_str() {
            "init" => vec![AgentEvent::Began {
                conversation: text(event, "/session_id"),
                version: given(text(event, "/claude_code_version")),
                model: given(text(event, "/model")),
            }],
            "api_retry" => {
                let status = event.get("error_status").and_then(Value::as_u64);
                let message = text(event, "/error");
                let outcome = status
                    .map_or(AgentOutcome::Overloaded, |status| class_of_status(status, &message));
                let message = status.map_or_else(
                    || "the connection was cut".to_owned(),
                    |status| format!("{message} ({status})"),
                );
                let delay = millis(event, "/retry_delay_ms");
                vec![AgentEvent::Retrying(End { delay, ..End::new(outcome, message) })]
            }
            "permission_denied" => {
                let id = text(event, "/tool_use_id");
                self.refused.insert(id.clone());
                let name = text(event, "/tool_name");
                let reason = text(event, "/message");
                vec![AgentEvent::ToolRefused { id, name, reason }]
            }
            "background_tasks_changed" => {
                let tasks = event["tasks"].as_array();
                self.has_background_work = tasks.is_some_and(|tasks| !tasks.is_empty());
                Vec::new()
            }
            "compact_boundary" => {
                let tokens = |name: &str| {
                    event.pointer(&format!("/compact_metadata/{name}")).and_then(Value::as_u64)
                };
                vec![AgentEvent::Compacted {
                    before: tokens("pre_tokens"),
                    after: tokens("post_tokens"),
                }]
            }
            _ => Vec::new(),
        }
    }

    fn assistant(&mut self, event: &Value) -> Vec<AgentEvent> {
        let message = &event["message"];
        if text(message, "/model") == "<synthetic>" {
            // The error of a request; the `result` follows.
            self.error = given(text(event, "/error"));
            return Vec::new();
        }
        let usage = usage(&message["usage"], &NAMES);
        if self.messages.insert(text(message, "/id"), usage).is_none() {
            self.answers += 1;
        }
        let mut events = vec![self.usage()];
        if event["parent_tool_use_id"].is_null() {
            events.extend(self.window.answered(message, &usage));
        }
        for block in message["content"].as_array().into_iter().flatten() {
            match text(block, "/type").as_str() {
                "text" => events.push(AgentEvent::Text(text(block, "/text"))),
                "tool_use" => events.push(AgentEvent::ToolBegan {
                    id: text(block, "/id"),
                    name: text(block, "/name"),
                    input: summary(&block["input"]),
                }),
                _ => {}
            }
        }
        events
    }

    fn result(&mut self, event: &Value) -> Vec<AgentEvent> {
        let mut events = Vec::new();
        for denial in event["permission_denials"].as_array().into_iter().flatten() {
            let id = text(denial, "/tool_use_id");
            // Earlier versions report a refusal only here.
            if self.refused.insert(id.clone()) {
                let name = text(denial, "/tool_name");
                events.push(AgentEvent::ToolRefused { id, name, reason: String::new() });
            }
        }
        self.finish_turn(event);
        events.push(self.usage());
        let end = end::of_result(event, self.error.take().as_deref(), self.resets_at);
        events.push(AgentEvent::Ended(end));
        events
    }

    /// The usage of a result replaces that of the messages, whose output is incomplete.
    fn finish_turn(&mut self, event: &Value) {
        let messages = std::mem::take(&mut self.messages);
        let models = event.get("model_usage_since_last_result").and_then(Value::as_object);
        let Some(models) = models.filter(|models| !models.is_empty()) else {
            if event["usage"].is_object() {
                self.finished += usage(&event["usage"], &NAMES);
            } else {
                for message in messages.into_values() {
                    self.finished += message;
                }
            }
            let cost = micros(event, "/total_cost_usd").unwrap_or_default();
            self.cost_micros = self.cost_micros.max(cost);
            return;
        };
        for model in models.values() {
            self.finished += usage(model, &MODEL_NAMES);
            self.cost_micros += micros(model, "/costUSD").unwrap_or_default();
        }
    }

    fn usage(&self) -> AgentEvent {
        let mut usage = self.finished;
        for message in self.messages.values() {
            usage += *message;
        }
        let cost_micros = Some(self.cost_micros).filter(|cost| *cost > 0);
        AgentEvent::Usage { usage, cost_micros, turns: Some(self.answers) }
    }
}

/// Results of tools. Their content may be a plain string after a compaction.
fn user(event: &Value) -> Vec<AgentEvent> {
    let blocks = event.pointer("/message/content").and_then(Value::as_array);
    let results = blocks.into_iter().flatten().filter(|block| block["type"] == "tool_result");
    results
        .map(|block| AgentEvent::ToolEnded {
            id: text(block, "/tool_use_id"),
            output: content(&block["content"]),
            ok: !block["is_error"].as_bool().unwrap_or_default(),
        })
        .collect()
}

/// Input, output, cache read, cache write, as messages and results name them.
const NAMES: [&str; 4] =
    ["/input_tokens", "/output_tokens", "/cache_read_input_tokens", "/cache_creation_input_tokens"];
/// The same in the usage by model.
const MODEL_NAMES: [&str; 4] =
    ["/inputTokens", "/outputTokens", "/cacheReadInputTokens", "/cacheCreationInputTokens"];

fn usage(value: &Value, [input, output, cache_read, cache_write]: &[&str; 4]) -> Usage {
    Usage {
        input: number(value, input),
        output: number(value, output),
        cache_read: number(value, cache_read),
        cache_write: number(value, cache_write),
    }
}

fn given(text: String) -> Option<String> {
    Some(text).filter(|text| !text.is_empty())
}
