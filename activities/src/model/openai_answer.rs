//! Chat completions: the events of an answer.

use longhaul_engine::Failure;
use longhaul_workflows::contracts::{Block, ModelStop, ToolCall, Usage};
use serde_json::Value;

use super::ModelEvent;
use super::received::{Length, Reader, Received, drop_cut_call, text};

/// The answer so far.
#[derive(Debug, Default)]
pub(super) struct Answer {
    text: String,
    calls: Vec<Call>,
    stop: Option<ModelStop>,
    refused: bool,
    usage: Option<Usage>,
    model: String,
    length: Length,
}

#[derive(Debug)]
struct Call {
    index: Option<u64>,
    call: ToolCall,
}

impl Reader for Answer {
    fn read(&mut self, event: &Value) -> Result<Option<ModelEvent>, Failure> {
        if let Some(model) = event["model"].as_str().filter(|_| self.model.is_empty()) {
            model.clone_into(&mut self.model);
        }
        if let Some(usage) = usage(&event["usage"]) {
            self.usage = Some(usage);
        }
        let choice = &event["choices"][0];
        if let Some(reason) = choice["finish_reason"].as_str() {
            self.stop = Some(stop(reason));
        }
        let delta = &choice["delta"];
        let mut live = None;
        for call in delta["tool_calls"].as_array().into_iter().flatten() {
            live = self.extend_call(call)?.or(live);
        }
        for (field, is_refusal) in [("content", false), ("refusal", true)] {
            let piece = text(delta, field);
            if !piece.is_empty() {
                self.length.add(piece)?;
                self.text.push_str(piece);
                self.refused |= is_refusal;
                live = Some(ModelEvent::Text { text: piece.to_owned() });
            }
        }
        // vLLM, llama.cpp and others; it is not sent back.
        for field in ["reasoning_content", "reasoning"] {
            let piece = text(delta, field);
            if !piece.is_empty() {
                live = live.or(Some(ModelEvent::Thinking { text: piece.to_owned() }));
            }
        }
        Ok(live)
    }

    fn is_complete(&self) -> bool {
        self.stop.is_some()
    }

    fn finish(mut self: Box<Self>) -> Received {
        // Some servers say `stop` although the model waits for tools.
        if self.stop == Some(ModelStop::EndTurn) && !self.calls.is_empty() {
            self.stop = Some(ModelStop::ToolUse);
        }
        if self.refused {
            self.stop = Some(ModelStop::Refusal);
        }
        let is_cut = self.stop == Some(ModelStop::MaxTokens);
        for call in &mut self.calls {
            if call.call.input.is_empty() && !is_cut {
                call.call.input.push_str("{}");
            }
        }
        let text = (!self.text.is_empty()).then_some(Block::Text { text: self.text });
        let calls = self.calls.into_iter().map(|call| Block::ToolUse(call.call));
        let mut blocks: Vec<Block> = text.into_iter().chain(calls).collect();
        if is_cut {
            drop_cut_call(&mut blocks);
        }
        Received { blocks, stop: self.stop, usage: self.usage, model: self.model }
    }
}

impl Answer {
    /// Adds a piece to the tool call with its index. Some servers send no index, or the same one
    /// for several calls with ids of their own; some send no id.
    fn extend_call(&mut self, piece: &Value) -> Result<Option<ModelEvent>, Failure> {
        let index = piece["index"].as_u64();
        let id = text(piece, "id");
        let function = &piece["function"];
        let is_same = |call: &Call| {
            let same_index = index.is_none() || call.index == index;
            same_index && (id.is_empty() || call.call.id == id)
        };
        let begins = !self.calls.iter().any(is_same)
            || (index.is_none() && id.is_empty() && !text(function, "name").is_empty());
        self.length.add(text(function, "arguments"))?;
        let mut live = None;
        if begins {
            let id = match id {
                "" => format!("call_{}", self.calls.len()),
                id => id.to_owned(),
            };
            let name = text(function, "name").to_owned();
            live = Some(ModelEvent::Tool { name: name.clone() });
            let call = ToolCall { id, name, input: String::new() };
            self.calls.push(Call { index, call });
        }
        let call = if begins {
            self.calls.last_mut()
        } else {
            self.calls.iter_mut().rev().find(|call| is_same(call))
        };
        if let Some(call) = call {
            match &function["arguments"] {
                Value::String(piece) => call.call.input.push_str(piece),
                Value::Object(_) => call.call.input = function["arguments"].to_string(),
                _ => {}
            }
        }
        Ok(live)
    }
}

/// The tokens of a request; of cached ones the provider counts only the reading.
fn usage(reported: &Value) -> Option<Usage> {
    let prompt = reported["prompt_tokens"].as_u64()?;
    let cached = reported["prompt_tokens_details"]["cached_tokens"].as_u64().unwrap_or_default();
    let cached = cached.min(prompt);
    let output = reported["completion_tokens"].as_u64().unwrap_or_default();
    Some(Usage { input: prompt - cached, output, cache_read: cached, cache_write: 0 })
}

fn stop(reason: &str) -> ModelStop {
    match reason {
        "stop" => ModelStop::EndTurn,
        "tool_calls" | "function_call" => ModelStop::ToolUse,
        "length" => ModelStop::MaxTokens,
        "content_filter" => ModelStop::Refusal,
        other => ModelStop::Other(other.chars().take(64).collect()),
    }
}
