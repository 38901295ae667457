//! Codex, without a person: `codex exec --json`.
//!
//! Errors are text only. A write that its sandbox refuses is a failed command, or no event at all.
//! With the network down it waits for ever, and says so.

use std::collections::BTreeSet;

use longhaul_workflows::contracts::{AgentOutcome, Usage};
use serde_json::Value;

use super::environment::{AgentEnvironment, mentions};
use super::event::{content, number, summary, text};
use super::{Abilities, AgentDriver, AgentEvent, Conversation, End, Launch, Reader, class_of};

#[derive(Debug)]
pub(super) struct Codex;

impl AgentDriver for Codex {
    fn name(&self) -> &'static str {
        "codex"
    }

    fn abilities(&self) -> Abilities {
        Abilities { chooses_conversation: false, reports_whole_usage: true, has_version: true }
    }

    fn args(&self, launch: &Launch<'_>) -> Vec<String> {
        let mut args = vec!["exec", "--json", "--skip-git-repo-check"];
        // It can only read by default, and after a resume again.
        let sandbox =
            ["--sandbox", "-s", "--full-auto", "--dangerously-bypass-approvals-and-sandbox"];
        if !launch.sets(&sandbox) {
            args.extend(["--sandbox", "workspace-write"]);
        }
        if let Some(model) = launch.model {
            args.extend(["--model", model]);
        }
        let given = launch.args.iter().map(String::as_str);
        args.extend(given);
        if let Conversation::Resumed(id) = launch.conversation {
            args.extend(["resume", id]);
        }
        args.push("-");
        args.into_iter().map(str::to_owned).collect()
    }

    fn env(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    fn pass_env(&self) -> &'static [&'static str] {
        &["CODEX_HOME"]
    }

    fn reader(&self) -> Box<dyn Reader> {
        Box::<CodexReader>::default()
    }

    fn login(&self) -> &'static str {
        "run `codex login`, or set the variable with the key of its provider in [agent] pass_env"
    }

    fn is_logged_in(&self, given: &AgentEnvironment<'_>) -> Option<bool> {
        let home = given.folder("CODEX_HOME", ".codex");
        let is = given.has("OPENAI_API_KEY")
            || given.has("CODEX_API_KEY")
            || home.join("auth.json").exists();
        // A provider of its own configuration names a variable of its own, or none.
        let has_provider = mentions(&home.join("config.toml"), "model_provider")
            || given.agent.args.iter().any(|arg| arg.contains("model_provider"));
        if is { Some(true) } else { (!has_provider).then_some(false) }
    }
}

/// Reads the events of `exec --json`.
#[derive(Debug, Default)]
struct CodexReader {
    /// The last error, which may be repeated by the failed turn.
    error: Option<String>,
    /// The tools at work.
    begun: BTreeSet<String>,
}

impl Reader for CodexReader {
    fn line(&mut self, line: &str) -> Vec<AgentEvent> {
        let Some(event) = serde_json::from_str::<Value>(line).ok().filter(Value::is_object) else {
            // Its own log, on standard error.
            if line.to_lowercase().contains("waiting for network") {
                let end = End::new(AgentOutcome::Overloaded, line.trim());
                return vec![AgentEvent::Retrying(end)];
            }
            return vec![AgentEvent::Note(line.to_owned())];
        };
        match text(&event, "/type").as_str() {
            "thread.started" => vec![AgentEvent::Began {
                conversation: text(&event, "/thread_id"),
                version: None,
                model: None,
            }],
            "item.started" => self.started(&event["item"]),
            "item.completed" => self.completed(&event["item"]),
            "error" => {
                let message = text(&event, "/message");
                let end = End::new(class_of(&message), message.clone());
                self.error = Some(message);
                vec![AgentEvent::Retrying(end)]
            }
            "turn.completed" => {
                let end = End::new(AgentOutcome::Completed, "");
                vec![
                    AgentEvent::Usage {
                        usage: usage(&event["usage"]),
                        cost_micros: None,
                        turns: None,
                    },
                    AgentEvent::Ended(end),
                ]
            }
            "turn.failed" => {
                let mut message = text(&event, "/error/message");
                if message.is_empty() {
                    message = self.error.take().unwrap_or_default();
                }
                vec![AgentEvent::Ended(End::new(class_of(&message), message))]
            }
            _ => Vec::new(),
        }
    }
}

impl CodexReader {
    fn started(&mut self, item: &Value) -> Vec<AgentEvent> {
        let Some((name, input)) = tool(item) else { return Vec::new() };
        let id = text(item, "/id");
        self.begun.insert(id.clone());
        vec![AgentEvent::ToolBegan { id, name, input }]
    }

    fn completed(&mut self, item: &Value) -> Vec<AgentEvent> {
        match text(item, "/type").as_str() {
            "agent_message" => return vec![AgentEvent::Text(text(item, "/text"))],
            // A warning; failures have an event of their own.
            "error" => return vec![AgentEvent::Note(text(item, "/message"))],
            _ => {}
        }
        let Some((name, input)) = tool(item) else { return Vec::new() };
        let id = text(item, "/id");
        let mut events = Vec::new();
        if !self.begun.remove(&id) {
            events.push(AgentEvent::ToolBegan { id: id.clone(), name: name.clone(), input });
        }
        let output = match text(item, "/aggregated_output") {
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
            let ok = item["status"] == "completed";
            let output = if output.is_empty() { error } else { output };
            events.push(AgentEvent::ToolEnded { id, output, ok });
        }
        events
    }
}

/// The name and the input of a tool.
fn tool(item: &Value) -> Option<(String, String)> {
    Some(match text(item, "/type").as_str() {
        "command_execution" => ("shell".into(), text(item, "/command")),
        "mcp_tool_call" => (
            format!("{}/{}", text(item, "/server"), text(item, "/tool")),
            summary(&item["arguments"]),
        ),
        "file_change" => {
            let changes = item["changes"].as_array().into_iter().flatten();
            let paths: Vec<_> = changes.map(|change| text(change, "/path")).collect();
            ("edit".into(), paths.join(" "))
        }
        "web_search" => ("web_search".into(), text(item, "/query")),
        _ => return None,
    })
}

/// The tokens of the whole thread. Cached tokens are a part of the input.
fn usage(value: &Value) -> Usage {
    let cache_read = number(value, "/cached_input_tokens");
    let cache_write = number(value, "/cache_write_input_tokens");
    Usage {
        input: number(value, "/input_tokens").saturating_sub(cache_read + cache_write),
        output: number(value, "/output_tokens"),
        cache_read,
        cache_write,
    }
}
