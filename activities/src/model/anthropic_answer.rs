//! Anthropic's Messages API: the events of an answer.

use std::collections::BTreeMap;

use longhaul_engine::Failure;
use longhaul_workflows::contracts::{Block, ModelStop, ToolCall, Usage};
use serde_json::Value;

use super::ModelEvent;
use super::received::{Length, Reader, Received, drop_cut_call, text};

/// The answer so far.
#[derive(Debug, Default)]
pub(super) struct Answer {
    parts: BTreeMap<u64, PartialBlock>,
    stop: Option<ModelStop>,
    usage: Option<Usage>,
    model: String,
    length: Length,
}

/// A content block: its first form, and its additions.
#[derive(Debug)]
struct PartialBlock {
    block: Value,
    /// The pieces of `input`, which are JSON only together.
    input: String,
}

impl Reader for Answer {
    fn read(&mut self, event: &Value) -> Result<Option<ModelEvent>, Failure> {
        let index = || event["index"].as_u64().unwrap_or_default();
        match text(event, "type") {
            "message_start" => {
                text(&event["message"], "model").clone_into(&mut self.model);
                self.add_usage(&event["message"]["usage"]);
            }
            "content_block_start" => return self.begin(index(), &event["content_block"]),
            "content_block_delta" => return self.extend(index(), &event["delta"]),
            "message_delta" => {
                self.add_usage(&event["usage"]);
                if let Some(reason) = event["delta"]["stop_reason"].as_str() {
                    self.stop = Some(stop(reason));
                }
            }
            _ => {}
        }
        Ok(None)
    }

    fn is_complete(&self) -> bool {
        self.stop.is_some()
    }

    fn finish(self: Box<Self>) -> Received {
        let is_cut = self.stop == Some(ModelStop::MaxTokens);
        let mut blocks: Vec<Block> =
            self.parts.into_values().filter_map(|part| part.finish(is_cut)).collect();
        if is_cut {
            drop_cut_call(&mut blocks);
        }
        Received { blocks, stop: self.stop, usage: self.usage, model: self.model }
    }
}

impl Answer {
    fn begin(&mut self, index: u64, block: &Value) -> Result<Option<ModelEvent>, Failure> {
        self.length.add(&block.to_string())?;
        self.parts.insert(index, PartialBlock { block: block.clone(), input: String::new() });
        let is_tool = text(block, "type") == "tool_use";
        Ok(is_tool.then(|| ModelEvent::Tool { name: text(block, "name").to_owned() }))
    }

    fn extend(&mut self, index: u64, delta: &Value) -> Result<Option<ModelEvent>, Failure> {
        let Some(part) = self.parts.get_mut(&index) else {
            return Err(Failure::retryable("the stream of the model's answer lacks an event"));
        };
        let mut piece = |field: &str| -> Result<String, Failure> {
            let piece = text(delta, field);
            self.length.add(piece)?;
            Ok(piece.to_owned())
        };
        Ok(match text(delta, "type") {
            "text_delta" => {
                let text = piece("text")?;
                part.append("text", &text);
                Some(ModelEvent::Text { text })
            }
            "thinking_delta" => {
                let text = piece("thinking")?;
                part.append("thinking", &text);
                Some(ModelEvent::Thinking { text })
            }
            "signature_delta" => {
                part.append("signature", &piece("signature")?);
                None
            }
            "input_json_delta" => {
                part.input.push_str(&piece("partial_json")?);
                None
            }
            _ => None,
        })
    }

    /// Takes the fields that an event has: the input side comes first, the output is cumulative.
    fn add_usage(&mut self, reported: &Value) {
        if !reported.is_object() {
            return;
        }
        let usage = self.usage.get_or_insert_default();
        for (field, place) in [
            ("input_tokens", &mut usage.input),
            ("output_tokens", &mut usage.output),
            ("cache_read_input_tokens", &mut usage.cache_read),
            ("cache_creation_input_tokens", &mut usage.cache_write),
        ] {
            // Some servers end with zeros.
            if let Some(tokens) = reported[field].as_u64().filter(|tokens| *tokens > 0) {
                *place = tokens;
            }
        }
    }
}

impl PartialBlock {
    fn append(&mut self, field: &str, piece: &str) {
        match &mut self.block[field] {
            Value::String(text) => text.push_str(piece),
            other => *other = piece.into(),
        }
    }

    /// The block; none if it is empty, or if the cut answer ends in reasoning without its
    /// signature, which the API refuses.
    fn finish(mut self, is_cut: bool) -> Option<Block> {
        match text(&self.block, "type") {
            "text" => {
                let text = text(&self.block, "text").to_owned();
                (!text.is_empty()).then_some(Block::Text { text })
            }
            "tool_use" => {
                let id = text(&self.block, "id");
                let name = text(&self.block, "name");
                let input = match self.input.is_empty() {
                    // A server without pieces; `{}` stands for pieces to come.
                    true if self.block["input"].as_object().is_some_and(|at| !at.is_empty()) => {
                        self.block["input"].to_string()
                    }
                    true if !is_cut => "{}".into(),
                    _ => self.input.clone(),
                };
                Some(Block::ToolUse(ToolCall { id: id.into(), name: name.into(), input }))
            }
            "thinking" if is_cut && text(&self.block, "signature").is_empty() => None,
            _ => {
                if !self.input.is_empty() {
                    self.block["input"] = serde_json::from_str(&self.input).ok()?;
                }
                Some(Block::Opaque { json: self.block.to_string() })
            }
        }
    }
}

fn stop(reason: &str) -> ModelStop {
    match reason {
        "end_turn" => ModelStop::EndTurn,
        "tool_use" => ModelStop::ToolUse,
        "max_tokens" => ModelStop::MaxTokens,
        "model_context_window_exceeded" => ModelStop::ContextFull,
        "refusal" => ModelStop::Refusal,
        other => ModelStop::Other(other.chars().take(64).collect()),
    }
}
