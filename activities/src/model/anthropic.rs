//! Anthropic's Messages API: the request.

use longhaul_workflows::contracts::{Block, Message, ModelCall, ToolSpec};
use serde_json::{Value, json};

use super::received::arguments;

/// The version of the interface.
pub(super) const VERSION: &str = "2023-06-01";

/// The body of a request. The prefix is the same for each request of a conversation; the system
/// prompt (which covers the tools) and the last message end what the provider caches.
pub(super) fn body(call: &ModelCall, messages: &[Message], max_tokens: u64) -> Value {
    let mut body = json!({ "model": call.model, "max_tokens": max_tokens, "stream": true });
    let mut turns: Vec<Value> = Vec::new();
    for message in messages {
        match message {
            Message::Start { system, tools } => start(&mut body, system, tools),
            Message::User { blocks } => add(&mut turns, "user", blocks),
            Message::Model { blocks } => add(&mut turns, "assistant", blocks),
        }
    }
    let last = turns.last_mut().and_then(|turn| turn["content"].as_array_mut()?.last_mut());
    if let Some(last) = last {
        mark(last);
    }
    body["messages"] = turns.into();
    body
}

/// Ends a cached prefix.
fn mark(block: &mut Value) {
    block["cache_control"] = json!({ "type": "ephemeral" });
}

fn start(body: &mut Value, system: &str, tools: &[ToolSpec]) {
    let mut tools: Vec<Value> = tools.iter().map(tool).collect();
    if !system.is_empty() {
        let mut part = json!({ "type": "text", "text": system });
        mark(&mut part);
        body["system"] = json!([part]);
    } else if let Some(last) = tools.last_mut() {
        mark(last);
    }
    if !tools.is_empty() {
        body["tools"] = tools.into();
    }
}

fn tool(tool: &ToolSpec) -> Value {
    json!({
        "name": tool.name,
        "description": tool.description,
        "input_schema": schema(tool),
    })
}

/// The schema of a tool's arguments; that of any object if it is not JSON.
pub(super) fn schema(tool: &ToolSpec) -> Value {
    serde_json::from_str(&tool.schema).unwrap_or_else(|_| json!({ "type": "object" }))
}

/// Adds blocks to the last turn, or begins a turn: turns of one side follow each other if an answer
/// between them was empty.
fn add(turns: &mut Vec<Value>, role: &str, blocks: &[Block]) {
    let mut blocks: Vec<Value> = blocks.iter().filter_map(block).collect();
    if blocks.is_empty() {
        return;
    }
    let last = turns.last_mut().filter(|turn| turn["role"] == role);
    if let Some(content) = last.and_then(|turn| turn["content"].as_array_mut()) {
        content.append(&mut blocks);
    } else {
        turns.push(json!({ "role": role, "content": blocks }));
    }
}

/// A block as it is sent; the API refuses empty texts.
fn block(block: &Block) -> Option<Value> {
    Some(match block {
        Block::Text { text } if text.trim().is_empty() => return None,
        Block::Text { text } => json!({ "type": "text", "text": text }),
        Block::Opaque { json } => serde_json::from_str(json).ok()?,
        Block::ToolUse(call) => json!({
            "type": "tool_use",
            "id": call.id,
            "name": call.name,
            "input": arguments(call),
        }),
        Block::ToolResult { id, text, is_error } => {
            let mut result = json!({ "type": "tool_result", "tool_use_id": id, "content": text });
            if *is_error {
                result["is_error"] = true.into();
            }
            result
        }
    })
}
