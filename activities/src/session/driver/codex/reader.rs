//! The messages of the app-server.

use std::collections::BTreeSet;

use longhaul_workflows::contracts::{AgentOutcome, Usage, WindowUse};
use serde_json::Value;

use super::super::event::{content, number, summary, text};
use super::super::{AgentEvent, Dialogue, End, Line, Reader};
use super::end;
use super::requests::{INITIALIZE, Requests, THREAD, TURN};

/// Reads the messages of the app-server; with requests it also answers them.
#[derive(Debug, Default)]
pub(super) struct CodexReader {
    requests: Option<Requests>,
    /// The thread of the session; those of sub-agents are others.
    thread: String,
    /// Its turn, and the answers of the model in that.
    turn: String,
    answers: u32,
    /// The tools at work.
    begun: BTreeSet<String>,
}

impl Reader for CodexReader {
    fn line(&mut self, line: &str) -> Vec<AgentEvent> {
        let Some(message) = serde_json::from_str::<Value>(line).ok().filter(Value::is_object)
        else {
            // Its own log, on standard error.
            return vec![AgentEvent::Note(line.to_owned())];
        };
        let method = text(&message, "/method");
        match (message.get("id"), method.as_str()) {
            (Some(id), "") => self.answered(id.as_u64().unwrap_or_default(), &message),
            (Some(id), method) => {
                if let Some(requests) = &mut self.requests {
                    requests.refuse(id, method);
                }
                Vec::new()
            }
            (None, method) => self.notified(method, &message["params"]),
        }
    }

    fn replies(&mut self) -> Vec<Line> {
        self.requests.as_mut().map(Requests::take_lines).unwrap_or_default()
    }

    fn stop_at_boundary(&mut self) {
        if let Some(requests) = &mut self.requests {
            requests.stop_at_boundary();
        }
    }

    fn cancel(&self) -> Option<Line> {
        self.requests.as_ref()?.interrupt()
    }
}

impl CodexReader {
    /// A reader that speaks to the agent.
    pub(super) fn of(dialogue: &Dialogue) -> Self {
        Self { requests: Some(Requests::new(dialogue)), ..Self::default() }
    }

    /// The answer to a request of Longhaul.
    fn answered(&mut self, id: u64, message: &Value) -> Vec<AgentEvent> {
        if let Some(error) = message.get("error").filter(|_| id <= TURN) {
            return vec![AgentEvent::Ended(end::of_error(error))];
        }
        let result = &message["result"];
        match id {
            INITIALIZE => {
                if let Some(requests) = &mut self.requests {
                    requests.initialized();
                }
                Vec::new()
            }
            THREAD => {
                self.thread = text(result, "/thread/id");
                if let Some(requests) = &mut self.requests {
                    requests.thread_opened(&self.thread);
                }
                let model = Some(text(result, "/model")).filter(|model| !model.is_empty());
                vec![AgentEvent::Began { conversation: self.thread.clone(), version: None, model }]
            }
            TURN => {
                self.turn = text(result, "/turn/id");
                if let Some(requests) = &mut self.requests {
                    requests.turn_started(&self.turn);
                }
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    fn notified(&mut self, method: &str, params: &Value) -> Vec<AgentEvent> {
        let thread = text(params, "/threadId");
        if !thread.is_empty() && !self.thread.is_empty() && thread != self.thread {
            return Vec::new();
        }
        match method {
            "item/started" => self.started(&params["item"]),
            "item/completed" => self.completed(&params["item"]),
            "item/agentMessage/delta" | "item/reasoning/textDelta" => vec![AgentEvent::Answering],
            "thread/tokenUsage/updated" => self.used(params),
            "warning" | "configWarning" => {
                let message = [text(params, "/message"), text(params, "/summary")].concat();
                vec![AgentEvent::Note(message)]
            }
            // The end of the turn repeats an error that is final.
            "error" if params["willRetry"] == true => {
                let end = end::of_error(&params["error"]);
                let is_known = end.outcome != AgentOutcome::Protocol;
                let outcome = if is_known { end.outcome } else { AgentOutcome::Overloaded };
                vec![AgentEvent::Retrying(End { outcome, ..end })]
            }
            "turn/completed" => vec![AgentEvent::Ended(end::of_turn(&params["turn"]))],
            _ => Vec::new(),
        }
    }

    fn started(&mut self, item: &Value) -> Vec<AgentEvent> {
        let Some((name, input)) = tool(item) else { return Vec::new() };
        let id = text(item, "/id");
        self.begun.insert(id.clone());
        vec![AgentEvent::ToolBegan { id, name, input }]
    }

    fn completed(&mut self, item: &Value) -> Vec<AgentEvent> {
        match text(item, "/type").as_str() {
            "agentMessage" => return vec![AgentEvent::Text(text(item, "/text"))],
            "contextCompaction" => {
                return vec![AgentEvent::Compacted { before: None, after: None }];
            }
            _ => {}
        }
        let Some((name, input)) = tool(item) else { return Vec::new() };
        let id = text(item, "/id");
        let mut events = Vec::new();
        if !self.begun.remove(&id) {
            events.push(AgentEvent::ToolBegan { id: id.clone(), name: name.clone(), input });
        }
        let output = match text(item, "/aggregatedOutput") {
            output if output.is_empty() => {
                content(item.pointer("/result/content").unwrap_or(&Value::Null))
            }
            output => output,
        };
        let error = text(item, "/error/message");
        let is_declined = item["status"] == "declined" || error.contains("requires approval");
        if is_declined {
            events.push(AgentEvent::ToolRefused { id, name, reason: error });
        } else {
            let ok = item.get("status").is_none_or(|status| status == "completed");
            let output = if output.is_empty() { error } else { output };
            events.push(AgentEvent::ToolEnded { id, output, ok });
        }
        events
    }

    /// The tokens of the whole thread, and the filled part of its window.
    fn used(&mut self, params: &Value) -> Vec<AgentEvent> {
        let usage = &params["tokenUsage"];
        let total = &usage["total"];
        if number(total, "/inputTokens") == 0 {
            // A full window: the counts are replaced by its size.
            return Vec::new();
        }
        // A resumed thread states that of an earlier turn first.
        let turn = text(params, "/turnId");
        if turn.is_empty() || turn == self.turn {
            self.answers += 1;
        }
        // Cached tokens are a part of the input.
        let cache_read = number(total, "/cachedInputTokens");
        let cache_write = number(total, "/cacheWriteInputTokens");
        let whole = Usage {
            input: number(total, "/inputTokens").saturating_sub(cache_read + cache_write),
            output: number(total, "/outputTokens"),
            cache_read,
            cache_write,
        };
        let window = WindowUse {
            used: number(usage, "/last/totalTokens"),
            size: number(usage, "/modelContextWindow"),
        };
        let mut events =
            vec![AgentEvent::Usage { usage: whole, cost_micros: None, turns: Some(self.answers) }];
        events.extend((window.size > 0).then_some(AgentEvent::Window(window)));
        events
    }
}

/// The name and the input of a tool.
fn tool(item: &Value) -> Option<(String, String)> {
    Some(match text(item, "/type").as_str() {
        "commandExecution" => ("shell".into(), text(item, "/command")),
        "mcpToolCall" => (
            format!("{}/{}", text(item, "/server"), text(item, "/tool")),
            summary(&item["arguments"]),
        ),
        "fileChange" => {
            let changes = item["changes"].as_array().into_iter().flatten();
            let paths: Vec<_> = changes.map(|change| text(change, "/path")).collect();
            ("edit".into(), paths.join(" "))
        }
        "collabAgentToolCall" => (text(item, "/tool"), text(item, "/prompt")),
        "webSearch" => ("web_search".into(), text(item, "/query")),
        _ => return None,
    })
}
