//! An answer while it arrives, in either protocol.

use longhaul_engine::Failure;
use longhaul_workflows::contracts::{Block, ModelStop, ToolCall, Usage};
use serde_json::{Map, Value};

use super::ModelEvent;

/// The longest content of an answer, in bytes.
const LONGEST: usize = 16 * 1024 * 1024;
/// The key under which arguments are sent back that are not a JSON object.
const INVALID: &str = "INVALID_JSON";

/// Reads the events of one protocol.
pub(super) trait Reader: Send {
    /// Takes an event. Unknown events are ignored.
    fn read(&mut self, event: &Value) -> Result<Option<ModelEvent>, Failure>;

    /// Whether the reason of the end has arrived: the answer is complete.
    fn is_complete(&self) -> bool;

    /// The answer.
    fn finish(self: Box<Self>) -> Received;
}

/// A complete answer.
#[derive(Debug, Default)]
pub(super) struct Received {
    pub(super) blocks: Vec<Block>,
    pub(super) stop: Option<ModelStop>,
    /// `None`: the service did not report it.
    pub(super) usage: Option<Usage>,
    pub(super) model: String,
}

/// The length of the content so far.
#[derive(Debug, Default)]
pub(super) struct Length(usize);

impl Length {
    /// Adds a piece.
    pub(super) fn add(&mut self, piece: &str) -> Result<(), Failure> {
        // A block or tool call takes memory even if it is empty.
        self.0 += piece.len().max(16);
        if self.0 > LONGEST {
            return Err(Failure::terminal(format!(
                "the answer of the model is longer than {LONGEST} bytes"
            )));
        }
        Ok(())
    }
}

/// Drops the tool call in which an answer was cut by its length limit: the last part, if its
/// arguments are incomplete.
pub(super) fn drop_cut_call(blocks: &mut Vec<Block>) {
    if let Some(Block::ToolUse(call)) = blocks.last()
        && object(&call.input).is_none()
    {
        blocks.pop();
    }
}

/// The arguments of a tool call as an object, which both protocols require.
pub(super) fn arguments(call: &ToolCall) -> Value {
    if call.input.trim().is_empty() {
        return Value::Object(Map::new());
    }
    object(&call.input).unwrap_or_else(|| serde_json::json!({ INVALID: call.input }))
}

fn object(text: &str) -> Option<Value> {
    serde_json::from_str(text).ok().filter(Value::is_object)
}

/// A text field; empty if missing.
pub(super) fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}
