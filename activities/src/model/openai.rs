//! Chat completions: the request.

use longhaul_workflows::contracts::{Block, Message, ModelCall, ToolSpec};
use serde_json::{Value, json};

use super::anthropic::schema;
use super::received::arguments;

/// The body of a request. Services cache its prefix by themselves.
pub(super) fn body(call: &ModelCall, messages: &[Message], max_tokens: u64) -> Value {
    let mut body = json!({
        "model": call.model,
        "stream": true,
        "stream_options": { "include_usage": true },
    });
    // OpenAI's newer models refuse the older name, which is all that other servers know.
    let limit = if call.api.url.is_some() { "max_tokens" } else { "max_completion_tokens" };
    body[limit] = max_tokens.into();
    let mut turns: Vec<Value> = Vec::new();
    for message in messages {
        match message {
            Message::Start { system, tools } => {
                if !system.is_empty() {
                    turns.push(json!({ "role": "system", "content": system }));
                }
                if !tools.is_empty() {
                    body["tools"] = tools.iter().map(tool).collect();
                }
            }
            Message::User { blocks } => user(&mut turns, blocks),
            Message::Model { blocks } => turns.extend(model(blocks)),
        }
    }
    body["messages"] = turns.into();
    body
}

fn tool(tool: &ToolSpec) -> Value {
    json!({
        "type": "function",
        "function": {
            "name": tool.name,
            "description": tool.description,
            "parameters": schema(tool),
        },
    })
}

/// Each result of a tool is a message of its own; texts follow as one message.
fn user(turns: &mut Vec<Value>, blocks: &[Block]) {
    for block in blocks {
        let Block::ToolResult { id, text, is_error } = block else { continue };
        // The protocol has no field for it.
        let text = if *is_error { format!("The tool failed:\n{text}") } else { text.clone() };
        turns.push(json!({ "role": "tool", "tool_call_id": id, "content": text }));
    }
    let text = texts(blocks);
    if text.is_empty() {
        return;
    }
    // Templates of some models demand that the sides take turns.
    match turns.last_mut().filter(|turn| turn["role"] == "user") {
        Some(last) => {
            let before = last["content"].as_str().unwrap_or_default();
            last["content"] = format!("{before}\n\n{text}").into();
        }
        None => turns.push(json!({ "role": "user", "content": text })),
    }
}

fn model(blocks: &[Block]) -> Option<Value> {
    let calls: Vec<Value> = blocks
        .iter()
        .filter_map(|block| {
            let Block::ToolUse(call) = block else { return None };
            let arguments = arguments(call).to_string();
            let function = json!({ "name": call.name, "arguments": arguments });
            Some(json!({ "id": call.id, "type": "function", "function": function }))
        })
        .collect();
    let text = texts(blocks);
    if text.is_empty() && calls.is_empty() {
        return None;
    }
    let mut message = json!({ "role": "assistant", "content": text });
    if !calls.is_empty() {
        message["tool_calls"] = calls.into();
    }
    Some(message)
}

fn texts(blocks: &[Block]) -> String {
    let text = |block: &Block| match block {
        Block::Text { text } => Some(text.clone()),
        _ => None,
    };
    blocks.iter().filter_map(text).collect::<Vec<_>>().join("\n\n")
}
