//! The events of an agent, equal for all drivers.

use std::time::Duration;

use longhaul_workflows::contracts::{Usage, WindowUse};
use serde_json::Value;

use super::End;

/// An event of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::session) enum AgentEvent {
    /// The conversation is known.
    Began { conversation: String, version: Option<String>, model: Option<String> },
    /// The model wrote text.
    Text(String),
    /// The model calls a tool, which begins.
    ToolBegan { id: String, name: String, input: String },
    /// A tool ended.
    ToolEnded { id: String, output: String, ok: bool },
    /// The agent asked for a tool call, and the settings allow it.
    ToolGranted { id: String, name: String },
    /// A tool call was refused.
    ToolRefused { id: String, name: String, reason: String },
    /// A part of an answer arrived.
    Answering,
    /// The model begins to answer; tools may run unseen until the answer is finished.
    AnswerBegan,
    /// An answer is finished, with its tools.
    AnswerEnded,
    /// All tokens of this process so far, the cost in millionths of a US dollar, and the answers of
    /// the model.
    Usage { usage: Usage, cost_micros: Option<u64>, turns: Option<u32> },
    /// The filled part of the window.
    Window(WindowUse),
    /// A request failed, and the agent repeats it.
    Retrying(End),
    /// The agent summarised its conversation.
    Compacted { before: Option<u64>, after: Option<u64> },
    /// The turn ended. The last one of a process counts.
    Ended(End),
    /// A line that is not an event: standard error, or a warning.
    Note(String),
}

/// A text at a JSON pointer; empty if there is none.
pub(super) fn text(value: &Value, pointer: &str) -> String {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// A number at a JSON pointer; zero if there is none.
pub(super) fn number(value: &Value, pointer: &str) -> u64 {
    value.pointer(pointer).and_then(Value::as_u64).unwrap_or_default()
}

/// An amount of US dollars at a JSON pointer, in millionths.
pub(super) fn micros(value: &Value, pointer: &str) -> Option<u64> {
    let micros = value.pointer(pointer)?.as_f64()? * 1e6;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a cast of a float saturates, and a cost is rounded"
    )]
    Some(micros.round() as u64)
}

/// A delay in milliseconds at a JSON pointer.
pub(super) fn millis(value: &Value, pointer: &str) -> Option<Duration> {
    value.pointer(pointer)?.as_u64().map(Duration::from_millis)
}

/// The content of a message or a tool result as text: a string, or text blocks.
pub(super) fn content(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            let texts: Vec<_> = blocks.iter().map(|block| text(block, "/text")).collect();
            texts.join("\n")
        }
        _ => String::new(),
    }
}

/// The argument of a tool call that describes it best.
pub(super) fn summary(input: &Value) -> String {
    const TELLING: [&str; 9] =
        ["command", "file_path", "filePath", "path", "pattern", "query", "url", "note", "prompt"];
    let found = TELLING.iter().find_map(|name| input.get(name)?.as_str());
    found.map_or_else(
        || if input.is_null() { String::new() } else { input.to_string() },
        str::to_owned,
    )
}
