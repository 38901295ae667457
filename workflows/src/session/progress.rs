//! The published progress of a session: its record for people and views.

use chrono::{DateTime, Utc};
use longhaul_engine::RunId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::contracts::{SessionEnding, Usage};
use crate::resources::Resources;

use super::SessionStart;
use super::window::Window;

/// The phase of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SessionPhase {
    /// It waits until the predecessor has handed its work over.
    #[default]
    Starting,
    /// It owns the work.
    Working,
    /// It waits for a person to answer a question.
    Asking,
    /// It has prepared a handoff, and does nothing until that is decided.
    HandingOver,
    /// It is over, or its successor owns the work.
    Shutdown,
}

/// The published progress of a session run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct SessionProgress {
    /// The phase.
    pub phase: SessionPhase,
    /// When it began to work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begun_at: Option<DateTime<Utc>>,
    /// Answers of the model.
    pub turns: u32,
    /// Tool calls.
    pub tool_calls: u32,
    /// The last tool call: `shell cargo test`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub step: String,
    /// The context window.
    pub window: Window,
    /// Summaries of the conversation.
    pub compactions: u32,
    /// Checkpoints taken.
    pub checkpoints: u32,
    /// All tokens so far, with those of summaries.
    pub usage: Usage,
    /// The cost so far in millionths of a US dollar, as far as it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_micros: Option<u64>,
    /// The time of model and tool calls in milliseconds.
    #[serde(default)]
    pub active_ms: u64,
    /// The model, as the provider names it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub model: String,
    /// The open question to a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<String>,
    /// How it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ending: Option<SessionEnding>,
    /// The session that continues the work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub successor: Option<RunId>,
}

impl SessionProgress {
    /// The key under which it is published.
    pub const KEY: &'static str = "session";

    /// The resources used.
    pub fn used(&self) -> Resources {
        Resources {
            turns: self.turns,
            tokens: self.usage.fresh(),
            cost_micros: self.cost_micros.unwrap_or_default(),
            time_ms: self.active_ms,
        }
    }

    /// Adds a cost, if it is known.
    pub(super) fn add_cost(&mut self, micros: Option<u64>) {
        if let Some(micros) = micros {
            *self.cost_micros.get_or_insert_default() += micros;
        }
    }

    pub(super) fn new(start: &SessionStart) -> Self {
        Self { window: Window::new(start.session.agent.context.window_of(None)), ..Self::default() }
    }
}
