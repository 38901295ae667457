//! What a script replies.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::Value;

use crate::Fault;

/// The reply to one request.
#[derive(Debug, Clone)]
pub enum Reply {
    /// An answer of the model.
    Answer(Answer),
    /// An error with its HTTP status.
    Fault(Fault),
    /// Status 200 and a body that is no stream of events.
    Garbage,
    /// The connection is closed without a response.
    Close,
    /// The reply after the hold, of which nothing is sent before.
    Held(Hold, Box<Reply>),
}

impl From<Answer> for Reply {
    fn from(answer: Answer) -> Self {
        Self::Answer(answer)
    }
}

impl From<Fault> for Reply {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

/// Why an answer ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// The turn has ended.
    EndTurn,
    /// The model waits for results of tools.
    ToolUse,
    /// The length limit is reached.
    MaxTokens,
    /// The window is full. Chat completions have no such reason: the length limit.
    WindowFull,
    /// The model refuses.
    Refusal,
    /// A long turn is interrupted. Chat completions have no such reason: an unknown one.
    Pause,
}

/// A part of an answer.
#[derive(Debug, Clone)]
pub(crate) enum Said {
    Text(String),
    Thinking(String),
    Call { name: String, input: String },
}

/// The point of a stream at which something happens: after this number of its events.
pub type After = usize;

/// An answer of the model.
#[derive(Debug, Clone, Default)]
pub struct Answer {
    pub(crate) parts: Vec<Said>,
    pub(crate) stop: Option<Stop>,
    pub(crate) cut: Option<After>,
    pub(crate) fault: Option<(After, Fault)>,
    pub(crate) garbage: Option<After>,
    pub(crate) hold: Option<(After, Hold)>,
    pub(crate) pace: Option<Duration>,
    pub(crate) lacks_usage: bool,
    /// The stated tokens of the prompt; by default they are counted.
    pub(crate) prompt: Option<u64>,
}

impl Answer {
    /// An answer that ends the turn.
    pub fn text(text: impl Into<String>) -> Self {
        Self { parts: vec![Said::Text(text.into())], ..Self::default() }
    }

    /// An answer that calls a tool.
    pub fn call(name: &str, input: &Value) -> Self {
        Self::default().and_call(name, &input.to_string())
    }

    /// Adds a text.
    #[must_use]
    pub fn and_text(mut self, text: impl Into<String>) -> Self {
        self.parts.push(Said::Text(text.into()));
        self
    }

    /// Adds the call of a tool, its arguments as text: perhaps invalid.
    #[must_use]
    pub fn and_call(mut self, name: &str, input: &str) -> Self {
        self.parts.push(Said::Call { name: name.to_owned(), input: input.to_owned() });
        self
    }

    /// Adds reasoning.
    #[must_use]
    pub fn and_thinking(mut self, text: impl Into<String>) -> Self {
        self.parts.push(Said::Thinking(text.into()));
        self
    }

    /// Ends for this reason instead of that which follows from the parts.
    #[must_use]
    pub fn stop(self, stop: Stop) -> Self {
        Self { stop: Some(stop), ..self }
    }

    /// Closes the connection after these events.
    #[must_use]
    pub fn cut_after(self, events: After) -> Self {
        Self { cut: Some(events), ..self }
    }

    /// Sends an error in the stream after these events, and ends it.
    #[must_use]
    pub fn fault_after(self, events: After, fault: Fault) -> Self {
        Self { fault: Some((events, fault)), ..self }
    }

    /// Sends an event that is not JSON after these events, and ends the stream.
    #[must_use]
    pub fn garbage_after(self, events: After) -> Self {
        Self { garbage: Some(events), ..self }
    }

    /// Waits after these events until the hold is released.
    #[must_use]
    pub fn hold_after(self, events: After, hold: &Hold) -> Self {
        Self { hold: Some((events, hold.clone())), ..self }
    }

    /// Waits before each event.
    #[must_use]
    pub fn paced(self, pace: Duration) -> Self {
        Self { pace: Some(pace), ..self }
    }

    /// Reports no usage.
    #[must_use]
    pub fn without_usage(self) -> Self {
        Self { lacks_usage: true, ..self }
    }

    /// States these tokens for the prompt.
    #[must_use]
    pub fn of_prompt(self, tokens: u64) -> Self {
        Self { prompt: Some(tokens), ..self }
    }

    pub(crate) fn reason(&self) -> Stop {
        let calls = self.parts.iter().any(|part| matches!(part, Said::Call { .. }));
        self.stop.unwrap_or(if calls { Stop::ToolUse } else { Stop::EndTurn })
    }

    /// The tokens of the answer: its bytes / 4, and at least one.
    pub(crate) fn tokens(&self) -> u64 {
        let length = |part: &Said| match part {
            Said::Text(text) | Said::Thinking(text) => text.len(),
            Said::Call { name, input } => name.len() + input.len(),
        };
        (self.parts.iter().map(length).sum::<usize>() as u64 / 4).max(1)
    }
}

/// Holds replies until it is released. Clones are the same hold.
#[derive(Debug, Clone, Default)]
pub struct Hold(Arc<AtomicBool>);

impl Hold {
    /// A hold that is not released.
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets the replies go.
    pub fn release(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    pub(crate) fn is_released(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}
