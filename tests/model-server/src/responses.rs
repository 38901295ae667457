//! OpenAI's Responses API: requests to it, and answers as its events.

use serde_json::{Value, json};

use crate::events::{Prompt, id, named, pieces};
use crate::reply::{Answer, Said, Stop};
use crate::request::{items, side, text, texts};
use crate::{Part, Request, Side, Turn};

/// The system prompt, the names of the tools, and the conversation.
pub(crate) fn read(body: &Value) -> (String, Vec<String>, Vec<Turn>) {
    let turn = |item: &Value| {
        let part = match item["type"].as_str() {
            Some("function_call") => {
                Part::Call { name: text(item, "name"), input: text(item, "arguments") }
            }
            Some("custom_tool_call") => {
                Part::Call { name: text(item, "name"), input: text(item, "input") }
            }
            Some("function_call_output" | "custom_tool_call_output") => {
                Part::Result(texts(&item["output"]))
            }
            Some("message") | None => Part::Text(texts(&item["content"])),
            _ => Part::Other(item.clone()),
        };
        let is_call = matches!(part, Part::Call { .. } | Part::Other(_));
        let side = if is_call { Side::Model } else { side(item) };
        Turn { side, parts: vec![part] }
    };
    let turns = match &body["input"] {
        Value::String(text) => {
            vec![Turn { side: Side::User, parts: vec![Part::Text(text.clone())] }]
        }
        input => items(input).map(turn).collect(),
    };
    let tools = items(&body["tools"]).map(|tool| text(tool, "name")).collect();
    (text(body, "instructions"), tools, turns)
}

/// The events of an answer, each with its framing.
pub(crate) fn render(request: &Request, answer: &Answer, prompt: Prompt) -> Vec<String> {
    let whole = |status: &str| {
        json!({
            "id": format!("resp_{:.12}", request.digest),
            "object": "response",
            "model": request.model,
            "status": status,
            "output": [],
        })
    };
    let mut events = vec![
        json!({ "type": "response.created", "response": whole("in_progress") }),
        json!({ "type": "response.an_event_of_a_later_version" }),
    ];
    let mut output = Vec::new();
    for (index, part) in answer.parts.iter().enumerate() {
        let item = responses_item(request, index, part);
        events.push(
            json!({ "type": "response.output_item.added", "output_index": index, "item": item }),
        );
        if let Said::Text(text) = part {
            events.extend(pieces(text).iter().map(|piece| {
                json!({
                    "type": "response.output_text.delta", "item_id": item["id"],
                    "output_index": index, "content_index": 0, "delta": piece,
                })
            }));
        }
        events.push(
            json!({ "type": "response.output_item.done", "output_index": index, "item": item }),
        );
        output.push(item);
    }
    let cut = match answer.reason() {
        Stop::EndTurn | Stop::ToolUse => None,
        Stop::MaxTokens | Stop::WindowFull => Some("max_output_tokens"),
        Stop::Refusal => Some("content_filter"),
        Stop::Pause => Some("a_later_reason"),
    };
    let status = if cut.is_some() { "incomplete" } else { "completed" };
    let mut response = whole(status);
    response["output"] = output.into();
    if let Some(reason) = cut {
        response["incomplete_details"] = json!({ "reason": reason });
    }
    if !answer.lacks_usage {
        response["usage"] = json!({
            "input_tokens": prompt.tokens,
            "input_tokens_details": { "cached_tokens": prompt.cached },
            "output_tokens": answer.tokens(),
            "output_tokens_details": { "reasoning_tokens": 0 },
            "total_tokens": prompt.tokens + answer.tokens(),
        });
    }
    events.push(json!({ "type": format!("response.{status}"), "response": response }));
    events.iter().map(named).collect()
}

/// A part of an answer as an item. A tool that takes text is called with text.
fn responses_item(request: &Request, index: usize, part: &Said) -> Value {
    let id = id(request, index);
    match part {
        Said::Text(text) => {
            let content = json!([{ "type": "output_text", "text": text, "annotations": [] }]);
            json!({ "type": "message", "id": id, "role": "assistant", "content": content })
        }
        Said::Thinking(text) => {
            let summary = json!([{ "type": "summary_text", "text": text }]);
            json!({ "type": "reasoning", "id": id, "summary": summary })
        }
        Said::Call { name, input } => {
            let tools = request.body["tools"].as_array().into_iter().flatten();
            let tool = tools.into_iter().find(|tool| tool["name"] == **name);
            if tool.is_some_and(|tool| tool["type"] == "custom") {
                json!({
                    "type": "custom_tool_call", "id": id, "call_id": id, "name": name,
                    "input": input,
                })
            } else {
                json!({
                    "type": "function_call", "id": id, "call_id": id, "name": name,
                    "arguments": input,
                })
            }
        }
    }
}

/// An error as an event.
pub(crate) fn fault(body: &str) -> String {
    let error = serde_json::from_str::<Value>(body).unwrap_or_default()["error"].take();
    let response = json!({ "status": "failed", "error": error });
    named(&json!({ "type": "response.failed", "response": response }))
}
