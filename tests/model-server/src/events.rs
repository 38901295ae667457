//! An answer as server-sent events, in all protocols.

use serde_json::{Value, json};

use crate::reply::{Answer, Said, Stop};
use crate::{Protocol, Request, responses};

/// The letters of one delta.
const DELTA: usize = 12;

/// The prompt tokens of an answer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Prompt {
    pub(crate) tokens: u64,
    /// Of them, those of a known prefix.
    pub(crate) cached: u64,
}

/// The events of an answer, each with its framing.
pub(crate) fn render(request: &Request, answer: &Answer, prompt: Prompt) -> Vec<String> {
    match request.protocol {
        Protocol::Anthropic => anthropic(request, answer, prompt),
        Protocol::OpenAi => openai(request, answer, prompt),
        Protocol::Responses => responses::render(request, answer, prompt),
    }
}

/// Ids of tool calls depend on the conversation only, so that repeated runs are equal.
pub(crate) fn id(request: &Request, nth: usize) -> String {
    format!("call_{:.12}_{nth}", request.digest)
}

pub(crate) fn pieces(text: &str) -> Vec<String> {
    let letters: Vec<char> = text.chars().collect();
    letters.chunks(DELTA).map(|letters| letters.iter().collect()).collect()
}

pub(crate) fn named(event: &Value) -> String {
    format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or_default())
}

fn anthropic(request: &Request, answer: &Answer, prompt: Prompt) -> Vec<String> {
    let is_marked = request.body.to_string().contains("\"cache_control\"");
    let new = prompt.tokens - prompt.cached;
    let mut usage = json!({
        "input_tokens": if is_marked { 0 } else { prompt.tokens },
        "cache_read_input_tokens": if is_marked { prompt.cached } else { 0 },
        "cache_creation_input_tokens": if is_marked { new } else { 0 },
        "output_tokens": 1,
    });
    if answer.lacks_usage {
        usage = Value::Null;
    }
    let message = json!({
        "id": format!("msg_{:.12}", request.digest),
        "type": "message",
        "role": "assistant",
        "model": request.model,
        "content": [],
        "usage": usage,
    });
    let mut events = vec![
        json!({ "type": "message_start", "message": message }),
        json!({ "type": "ping" }),
        json!({ "type": "an_event_of_a_later_version", "index": 99 }),
    ];
    for (index, part) in answer.parts.iter().enumerate() {
        anthropic_part(request, index, part, &mut events);
    }
    if !answer.lacks_usage {
        usage = json!({ "output_tokens": answer.tokens() });
    }
    let reason = match answer.reason() {
        Stop::EndTurn => "end_turn",
        Stop::ToolUse => "tool_use",
        Stop::MaxTokens => "max_tokens",
        Stop::WindowFull => "model_context_window_exceeded",
        Stop::Refusal => "refusal",
        Stop::Pause => "pause_turn",
    };
    events.push(
        json!({ "type": "message_delta", "delta": { "stop_reason": reason }, "usage": usage }),
    );
    events.push(json!({ "type": "message_stop" }));
    events.iter().map(named).collect()
}

fn anthropic_part(request: &Request, index: usize, part: &Said, events: &mut Vec<Value>) {
    let (block, kind, field, text) = match part {
        Said::Text(text) => (json!({ "type": "text", "text": "" }), "text_delta", "text", text),
        Said::Thinking(text) => {
            let block = json!({ "type": "thinking", "thinking": "", "signature": "" });
            (block, "thinking_delta", "thinking", text)
        }
        Said::Call { name, input } => {
            let id = id(request, index);
            let block = json!({ "type": "tool_use", "id": id, "name": name, "input": {} });
            (block, "input_json_delta", "partial_json", input)
        }
    };
    let delta = |kind: &str, field: &str, text: &str| {
        let delta = json!({ "type": kind, field: text });
        json!({ "type": "content_block_delta", "index": index, "delta": delta })
    };
    events.push(json!({ "type": "content_block_start", "index": index, "content_block": block }));
    events.extend(pieces(text).iter().map(|piece| delta(kind, field, piece)));
    if matches!(part, Said::Thinking(_)) {
        events.push(delta("signature_delta", "signature", "c2lnbmVk"));
    }
    events.push(json!({ "type": "content_block_stop", "index": index }));
}

fn openai(request: &Request, answer: &Answer, prompt: Prompt) -> Vec<String> {
    let chunk = |choices: Value| {
        json!({
            "id": format!("chatcmpl-{:.12}", request.digest),
            "object": "chat.completion.chunk",
            "model": request.model,
            "choices": choices,
        })
    };
    let delta =
        |delta: Value| chunk(json!([{ "index": 0, "delta": delta, "finish_reason": null }]));
    let mut events = vec![delta(json!({ "role": "assistant", "content": "" }))];
    let mut calls = 0;
    for part in &answer.parts {
        match part {
            Said::Text(text) => {
                events.extend(pieces(text).iter().map(|text| delta(json!({ "content": text }))));
            }
            Said::Thinking(text) => events.extend(
                pieces(text).iter().map(|text| delta(json!({ "reasoning_content": text }))),
            ),
            Said::Call { name, input } => {
                let function = json!({ "name": name, "arguments": "" });
                let id = id(request, calls);
                let begin =
                    json!({ "index": calls, "id": id, "type": "function", "function": function });
                events.push(delta(json!({ "tool_calls": [begin] })));
                for piece in pieces(input) {
                    let more = json!({ "index": calls, "function": { "arguments": piece } });
                    events.push(delta(json!({ "tool_calls": [more] })));
                }
                calls += 1;
            }
        }
    }
    let reason = match answer.reason() {
        Stop::EndTurn => "stop",
        Stop::ToolUse => "tool_calls",
        Stop::MaxTokens | Stop::WindowFull => "length",
        Stop::Refusal => "content_filter",
        Stop::Pause => "a_later_reason",
    };
    events.push(chunk(json!([{ "index": 0, "delta": {}, "finish_reason": reason }])));
    if !answer.lacks_usage && request.body["stream_options"]["include_usage"] == true {
        let mut last = chunk(json!([]));
        last["usage"] = json!({
            "prompt_tokens": prompt.tokens,
            "completion_tokens": answer.tokens(),
            "total_tokens": prompt.tokens + answer.tokens(),
            "prompt_tokens_details": { "cached_tokens": prompt.cached },
        });
        events.push(last);
    }
    let mut events: Vec<String> = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    events.push("data: [DONE]\n\n".into());
    events
}

/// An error as an event.
pub(crate) fn fault(request: &Request, body: &str) -> String {
    match request.protocol {
        Protocol::Anthropic => format!("event: error\ndata: {body}\n\n"),
        Protocol::OpenAi => format!("data: {body}\n\n"),
        Protocol::Responses => responses::fault(body),
    }
}
