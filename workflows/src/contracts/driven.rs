//! Facts about a session that the driver of a known agent reads from its event stream.

use serde::{Deserialize, Serialize};

use crate::resources::Resources;
use crate::settings::is_default;

use super::Usage;

/// Facts about the agent of a session. A command has none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentFacts {
    /// The driver: `claude`, `codex`, `opencode`, `acp`.
    pub driver: String,
    /// The version of the program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The model, as the agent names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The agent's own id of the conversation, by which it can be resumed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<String>,
    /// How it ended.
    pub outcome: AgentOutcome,
    /// The tokens of all attempts.
    pub usage: Usage,
    /// The answers of the model, if they are counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turns: Option<u32>,
    /// The cost of all attempts in millionths of a US dollar, if the agent states it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_micros: Option<u64>,
    /// The time of all attempts in milliseconds, without waits for people; absent: the duration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active_ms: Option<u64>,
    /// The tools of refused calls, one entry for each call.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<String>,
    /// The calls for which the agent asked and got permission.
    #[serde(default, skip_serializing_if = "is_default")]
    pub granted: u32,
    /// The filled part of its window at the end, if the agent states it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<WindowUse>,
}

/// How the agent of a session ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentOutcome {
    /// It ended its turn. A claim only: the gates decide.
    Completed,
    /// The conversation does not fit the window of the model.
    ContextFull,
    /// It reached its limit of turns, or of the length of an answer.
    TurnLimit,
    /// It reached a limit of money, tokens, turns or time.
    Budget,
    /// The provider limits the rate of requests.
    RateLimited,
    /// The provider is overloaded, or not reachable.
    Overloaded,
    /// It is not logged in, or its key is refused.
    Auth,
    /// The account has no credit.
    Billing,
    /// The model refused the task.
    Refused,
    /// Tool calls were refused, and no file was changed.
    ToolsRefused,
    /// A signal or a limit of Longhaul ended it.
    Interrupted,
    /// Longhaul ended its turn between two actions, because its window was nearly full.
    StoppedAtBoundary,
    /// It reported an error that the driver does not know.
    Protocol,
    /// It ended without a terminal event.
    Crashed,
}

impl AgentOutcome {
    /// Whether waiting helps: the same conversation continues later.
    pub fn is_to_be_continued_later(self) -> bool {
        matches!(self, Self::RateLimited | Self::Overloaded)
    }

    /// Whether only a person can help, by a login or by credit.
    pub fn needs_person(self) -> bool {
        matches!(self, Self::Auth | Self::Billing)
    }
}

/// The recorded progress of a session: how the next attempt continues its conversation.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct AgentProgress {
    /// The agent's own id of the conversation.
    pub conversation: String,
    /// The tokens so far.
    pub usage: Usage,
    /// The cost so far in millionths of a US dollar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_micros: Option<u64>,
    /// The model, as the agent names it; empty: not stated.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub model: String,
    /// The answers of the model so far, if they are counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turns: Option<u32>,
    /// The time of its processes until the last answer, in milliseconds.
    #[serde(default)]
    pub active_ms: u64,
    /// The number of waits for the provider in a row.
    #[serde(default)]
    pub waits: u32,
    /// The messages of the model so far.
    #[serde(default, skip_serializing_if = "is_default")]
    pub messages: u32,
    /// The tool calls so far.
    #[serde(default, skip_serializing_if = "is_default")]
    pub tools: u32,
    /// The calls so far for which the agent asked and got permission.
    #[serde(default, skip_serializing_if = "is_default")]
    pub granted: u32,
    /// The filled part of its window, if the agent states it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<WindowUse>,
}

/// The filled part of a context window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct WindowUse {
    /// The tokens in it.
    pub used: u64,
    /// The tokens that fit.
    pub size: u64,
}

impl WindowUse {
    /// Whether this part of the window is filled.
    #[expect(clippy::cast_precision_loss, reason = "a window has fewer tokens than that")]
    pub fn reaches(self, share: f64) -> bool {
        let used = self.used as f64;
        let size = self.size as f64;
        size > 0.0 && used >= share * size
    }
}

impl AgentProgress {
    /// The resources that the session has used so far.
    pub fn used(&self) -> Resources {
        Resources {
            turns: self.turns.unwrap_or_default(),
            tokens: self.usage.fresh(),
            cost_micros: self.cost_micros.unwrap_or_default(),
            time_ms: self.active_ms,
        }
    }
}
