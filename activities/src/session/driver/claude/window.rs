//! The filled part of the context window, from the events of answers.

use longhaul_workflows::contracts::{Usage, WindowUse};
use serde_json::Value;

use super::super::AgentEvent;
use super::super::event::text;
use super::control;

/// The bytes of a token, roughly.
const TOKEN: usize = 4;

/// The filled part of the context window.
#[derive(Debug, Default)]
pub(super) struct Window {
    /// Its size; zero: not known.
    size: u64,
    /// The answer that is being reported, and its tokens so far.
    message: String,
    output: u64,
}

impl Window {
    pub(super) fn new(size: u64) -> Self {
        Self { size, ..Self::default() }
    }

    pub(super) fn stated(&mut self, response: &Value) {
        self.size = control::window(response).unwrap_or(self.size);
    }

    /// A block of an answer. Its output is estimated, because the usage in an event has that of
    /// the begin of the answer.
    pub(super) fn answered(&mut self, message: &Value, usage: &Usage) -> Option<AgentEvent> {
        let id = text(message, "/id");
        if self.message != id {
            self.message = id;
            self.output = 0;
        }
        for block in message["content"].as_array().into_iter().flatten() {
            let length = text(block, "/text").len()
                + text(block, "/thinking").len()
                + block.get("input").map_or(0, |input| input.to_string().len());
            self.output += u64::try_from(length / TOKEN).unwrap_or_default();
        }
        let input = usage.input + usage.cache_read + usage.cache_write;
        let used = input + self.output.max(usage.output);
        (self.size > 0).then_some(AgentEvent::Window(WindowUse { used, size: self.size }))
    }
}
