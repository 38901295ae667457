//! opencode, without a person: `opencode run --format json`.
//!
//! It repeats failed requests for ever without an event, so its error log is read too:
//! `--print-logs`. A tool is reported when it has ended.

use longhaul_workflows::contracts::{AgentOutcome, Usage};
use serde_json::Value;

use super::environment::AgentEnvironment;
use super::event::{micros, number, summary, text};
use super::{
    Abilities, AgentDriver, AgentEvent, Conversation, End, Launch, Reader, class_of,
    class_of_status,
};

#[derive(Debug)]
pub(super) struct Opencode;

impl AgentDriver for Opencode {
    fn name(&self) -> &'static str {
        "opencode"
    }

    fn abilities(&self) -> Abilities {
        Abilities { chooses_conversation: false, reports_whole_usage: false, has_version: true }
    }

    fn args(&self, launch: &Launch<'_>) -> Vec<String> {
        let mut args = vec!["run", "--format", "json", "--print-logs", "--log-level", "ERROR"];
        if let Some(model) = launch.model {
            args.extend(["--model", model]);
        }
        if let Conversation::Resumed(id) = launch.conversation {
            args.extend(["--session", id]);
        }
        args.into_iter().map(str::to_owned).chain(launch.args.iter().cloned()).collect()
    }

    fn env(&self) -> &'static [(&'static str, &'static str)] {
        &[("OPENCODE_DISABLE_AUTOUPDATE", "1")]
    }

    fn pass_env(&self) -> &'static [&'static str] {
        &["OPENCODE_CONFIG", "OPENCODE_CONFIG_DIR"]
    }

    fn reader(&self) -> Box<dyn Reader> {
        Box::<OpencodeReader>::default()
    }

    fn first_start(&self, given: &AgentEnvironment<'_>) -> &'static [&'static str] {
        let config = given.folder("XDG_CONFIG_HOME", ".config").join("opencode");
        if config.join(".gitignore").exists() { &[] } else { &["session", "list"] }
    }

    fn login(&self) -> &'static str {
        "run `opencode auth login`, or set the variable with the key of its provider in [agent] \
         pass_env"
    }

    fn is_logged_in(&self, _given: &AgentEnvironment<'_>) -> Option<bool> {
        // A key can be in its configuration, in a variable of any provider, or not needed.
        None
    }
}

/// Reads the events of `run --format json`.
#[derive(Debug, Default)]
struct OpencodeReader {
    conversation: String,
    usage: Usage,
    cost_micros: u64,
    /// The finished answers.
    turns: u32,
}

impl Reader for OpencodeReader {
    fn line(&mut self, line: &str) -> Vec<AgentEvent> {
        let Some(event) = serde_json::from_str::<Value>(line).ok().filter(Value::is_object) else {
            return self.log_line(line);
        };
        let mut events = self.began(text(&event, "/sessionID"));
        let part = &event["part"];
        match text(&event, "/type").as_str() {
            "step_start" => events.push(AgentEvent::AnswerBegan),
            "text" if part.pointer("/metadata/compaction_continue").is_some() => {
                events.push(AgentEvent::Compacted { before: None, after: None });
            }
            "text" if part["synthetic"].as_bool() == Some(true) => {}
            "text" => events.push(AgentEvent::Text(text(part, "/text"))),
            "tool_use" => events.extend(tool(part)),
            "step_finish" => {
                self.add(part);
                let cost_micros = Some(self.cost_micros).filter(|cost| *cost > 0);
                events.push(AgentEvent::Usage {
                    usage: self.usage,
                    cost_micros,
                    turns: Some(self.turns),
                });
                events.push(AgentEvent::AnswerEnded);
                events.extend(finished(&text(part, "/reason")).map(AgentEvent::Ended));
            }
            "error" => events.push(AgentEvent::Ended(failure(&event["error"]))),
            _ => {}
        }
        events
    }
}

impl OpencodeReader {
    fn began(&mut self, conversation: String) -> Vec<AgentEvent> {
        if conversation.is_empty() || self.conversation == conversation {
            return Vec::new();
        }
        self.conversation.clone_from(&conversation);
        vec![AgentEvent::Began { conversation, version: None, model: None }]
    }

    fn add(&mut self, part: &Value) {
        self.usage += Usage {
            input: number(part, "/tokens/input"),
            output: number(part, "/tokens/output") + number(part, "/tokens/reasoning"),
            cache_read: number(part, "/tokens/cache/read"),
            cache_write: number(part, "/tokens/cache/write"),
        };
        self.turns += 1;
        self.cost_micros += micros(part, "/cost").unwrap_or_default();
    }

    /// A line of its log: a failed request, which it repeats. Requests for a title do not matter.
    fn log_line(&mut self, line: &str) -> Vec<AgentEvent> {
        let Some(end) = failed_request(line) else {
            return vec![AgentEvent::Note(line.to_owned())];
        };
        if is_for_title(line) {
            return Vec::new();
        }
        let conversation = line.split_once("session.id=").map_or("", |(_, rest)| rest);
        let conversation = conversation.split_whitespace().next().unwrap_or_default();
        let mut events = self.began(conversation.to_owned());
        // The event of a full context follows.
        if end.outcome != AgentOutcome::ContextFull {
            events.push(AgentEvent::Retrying(end));
        }
        events
    }
}

/// Whether a line of its log is about a request for a title.
pub(super) fn is_for_title(line: &str) -> bool {
    line.contains("small=true")
}

/// The failed request that a line of its log reports.
pub(super) fn failed_request(line: &str) -> Option<End> {
    if !line.contains("level=ERROR") || !line.contains("stream error") {
        return None;
    }
    let message = line.split_once("error.error=").map_or(line, |(_, error)| error);
    let message = message.trim().trim_matches('"');
    Some(End::new(class_of(message), message))
}

fn tool(part: &Value) -> Vec<AgentEvent> {
    let id = text(part, "/callID");
    let name = text(part, "/tool");
    let state = &part["state"];
    let input = summary(&state["input"]);
    let began = AgentEvent::ToolBegan { id: id.clone(), name: name.clone(), input };
    let error = text(state, "/error");
    let ended = if error.contains("rejected permission") || error.contains("prevents you from") {
        AgentEvent::ToolRefused { id, name, reason: error }
    } else {
        let ok = state["status"] == "completed";
        AgentEvent::ToolEnded { id, output: if ok { text(state, "/output") } else { error }, ok }
    };
    vec![began, ended]
}

/// The end that the last step means. After a tool call another step follows, unless a refused
/// permission ended the turn.
fn finished(reason: &str) -> Option<End> {
    match reason {
        "stop" => Some(End::new(AgentOutcome::Completed, "")),
        "length" => Some(End::new(AgentOutcome::TurnLimit, "the answer reached its length limit")),
        "content-filter" => Some(End::new(AgentOutcome::Refused, "the answer was filtered")),
        _ => None,
    }
}

fn failure(error: &Value) -> End {
    let message = text(error, "/data/message");
    let name = text(error, "/name");
    let status = error.pointer("/data/statusCode").and_then(Value::as_u64);
    let outcome = match (name.as_str(), status) {
        ("ContextOverflowError", _) => AgentOutcome::ContextFull,
        ("MessageOutputLengthError", _) => AgentOutcome::TurnLimit,
        ("MessageAbortedError", _) => AgentOutcome::Interrupted,
        ("ProviderAuthError", _) => AgentOutcome::Auth,
        (_, Some(status)) => class_of_status(status, &message),
        (_, None) => class_of(&message),
    };
    End::new(outcome, if message.is_empty() { name } else { message })
}
