//! Claude Code, without a person: `claude -p --output-format stream-json`.
//!
//! A process can have several turns, each with a `result`; the last one counts. Since 2.1.3xx
//! `terminal_reason` names the cause of an error; earlier versions say `completed` even then. So
//! `is_error` and `api_error_status` are read first.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use chrono::{DateTime, Utc};
use longhaul_workflows::contracts::{AgentOutcome, Usage};
use longhaul_workflows::resources::usd;
use serde_json::Value;

use super::environment::{AgentEnvironment, mentions};
use super::event::{content, micros, millis, number, summary, text};
use super::{
    Abilities, AgentDriver, AgentEvent, Conversation, End, Launch, Reader, class_of,
    class_of_status,
};

#[derive(Debug)]
pub(super) struct Claude;

/// A login is in one of these variables.
const KEYS: [&str; 7] = [
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "CLAUDE_CODE_USE_BEDROCK",
    "CLAUDE_CODE_USE_VERTEX",
    "CLAUDE_CODE_USE_FOUNDRY",
    "ANTHROPIC_BASE_URL",
];

impl AgentDriver for Claude {
    fn name(&self) -> &'static str {
        "claude"
    }

    fn abilities(&self) -> Abilities {
        Abilities { chooses_conversation: true, reports_whole_usage: false, has_version: true }
    }

    fn args(&self, launch: &Launch<'_>) -> Vec<String> {
        let mut args: Vec<&str> = vec!["-p", "--output-format", "stream-json", "--verbose"];
        // Without these, each write is refused.
        if !launch.sets(&["--allowedTools", "--allowed-tools"]) {
            args.extend(["--allowedTools", "Bash,Write,Edit,Read"]);
        }
        if !launch.sets(&["--permission-mode", "--dangerously-skip-permissions"]) {
            args.extend(["--permission-mode", "acceptEdits"]);
        }
        if let Some(model) = launch.model {
            args.extend(["--model", model]);
        }
        let limit = launch.cost_micros.map(usd).filter(|_| !launch.sets(&["--max-budget-usd"]));
        if let Some(limit) = &limit {
            args.extend(["--max-budget-usd", limit]);
        }
        match launch.conversation {
            Conversation::New(id) => args.extend(["--session-id", id]),
            Conversation::Resumed(id) => args.extend(["--resume", id]),
        }
        args.into_iter().map(str::to_owned).chain(launch.args.iter().cloned()).collect()
    }

    fn env(&self) -> &'static [(&'static str, &'static str)] {
        &[
            ("DISABLE_AUTOUPDATER", "1"),
            // Longhaul waits for the provider, with durable timers.
            ("CLAUDE_CODE_MAX_RETRIES", "2"),
            // A fresh session continues when the context is full.
            ("DISABLE_AUTO_COMPACT", "1"),
            // A command in the background would start a turn of its own.
            ("CLAUDE_CODE_DISABLE_BACKGROUND_TASKS", "1"),
        ]
    }

    fn pass_env(&self) -> &'static [&'static str] {
        &["CLAUDE_CONFIG_DIR"]
    }

    fn reader(&self) -> Box<dyn Reader> {
        Box::<ClaudeReader>::default()
    }

    fn login(&self) -> &'static str {
        "run `claude /login`, or set ANTHROPIC_API_KEY in [agent] pass_env"
    }

    fn is_logged_in(&self, given: &AgentEnvironment<'_>) -> Option<bool> {
        let config = given.folder("CLAUDE_CONFIG_DIR", ".claude");
        let has_helper = || mentions(&config.join("settings.json"), "apiKeyHelper");
        let is = KEYS.iter().any(|key| given.has(key))
            || config.join(".credentials.json").exists()
            || has_helper();
        // On macOS the login is in the keychain.
        if is { Some(true) } else { cfg!(target_os = "linux").then_some(false) }
    }
}

/// Reads `stream-json`.
#[derive(Debug, Default)]
struct ClaudeReader {
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
}

impl ClaudeReader {
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
                let (name, reason) = (text(event, "/tool_name"), text(event, "/message"));
                vec![AgentEvent::ToolRefused { id, name, reason }]
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
        events.push(AgentEvent::Ended(self.end(event)));
        self.error = None;
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

    fn end(&self, event: &Value) -> End {
        let mut message = text(event, "/result");
        if message.is_empty()
            && let Some(errors) = event["errors"].as_array()
        {
            let errors: Vec<_> = errors.iter().filter_map(Value::as_str).collect();
            message = errors.join("\n");
        }
        let outcome = self.outcome(event, &message);
        if outcome == AgentOutcome::Interrupted {
            // The text is a diagnosis of the program itself.
            message = "interrupted".into();
        }
        let end = End::new(outcome, message);
        match self.resets_at {
            Some(at) if outcome == AgentOutcome::RateLimited => End { delay: until(at), ..end },
            _ => end,
        }
    }

    fn outcome(&self, event: &Value, message: &str) -> AgentOutcome {
        let reason = text(event, "/terminal_reason");
        let reason = reason.as_str();
        if !event["is_error"].as_bool().unwrap_or_default() {
            return match (reason, text(event, "/subtype").as_str()) {
                ("aborted_tools" | "aborted_streaming", _) => AgentOutcome::Interrupted,
                (_, "success") => AgentOutcome::Completed,
                (_, subtype) => limit(subtype).unwrap_or(AgentOutcome::Protocol),
            };
        }
        if let Some(limit) = limit(&text(event, "/subtype")) {
            return limit;
        }
        if text(event, "/stop_reason") == "refusal" {
            return AgentOutcome::Refused;
        }
        match self.error.as_deref() {
            Some("billing_error") => return AgentOutcome::Billing,
            Some("authentication_failed") => return AgentOutcome::Auth,
            _ => {}
        }
        match reason {
            "prompt_too_long" | "rapid_refill_breaker" | "blocking_limit" => {
                return AgentOutcome::ContextFull;
            }
            "aborted_tools" | "aborted_streaming" => return AgentOutcome::Interrupted,
            "max_turns" => return AgentOutcome::TurnLimit,
            "budget_exhausted" => return AgentOutcome::Budget,
            // A tool gave more than a request may hold; the same request fails again.
            "image_error" => return AgentOutcome::ContextFull,
            _ => {}
        }
        match event.get("api_error_status").and_then(Value::as_u64) {
            Some(status) => class_of_status(status, message),
            None => class_of(message),
        }
    }
}

/// The outcome of a limit that the command line set.
fn limit(subtype: &str) -> Option<AgentOutcome> {
    match subtype {
        "error_max_turns" => Some(AgentOutcome::TurnLimit),
        "error_max_budget_usd" => Some(AgentOutcome::Budget),
        _ => None,
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

/// The delay until a time in seconds since 1970.
fn until(at: i64) -> Option<Duration> {
    (DateTime::from_timestamp(at, 0)? - Utc::now()).to_std().ok()
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
