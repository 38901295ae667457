//! A model call: one request and its answer.
//!
//! A conversation is a chain of messages, each named by the digest of itself and all before it. A
//! call names the chain so far by its head and carries only its new part, so a conversation of N
//! turns takes O(N) bytes of log. The handler keeps the chains it has seen as files. They are a
//! cache: if a head is missing, the call fails with [`CallModel::UNKNOWN_HEAD`], and the workflow
//! sends the whole conversation, which it has from the log.

use std::time::Duration;

use longhaul_engine::{Activity, Delays, Policy};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::settings::{ApiSettings, EnvSource};

use super::ProjectRef;

/// Sends a conversation to a model and reads its answer.
///
/// Guarded: an answer is paid for. The handler stores it in a file before it returns, and the probe
/// looks for that file; an unanswered request is sent again.
#[derive(Debug)]
pub struct CallModel;

impl CallModel {
    /// The failure code of a chain that the handler does not have.
    pub const UNKNOWN_HEAD: &'static str = "unknown_head";
    /// The failure code of a key that the provider refuses, or that is missing.
    pub const AUTH: &'static str = "auth";
    /// The failure code of an account without credit.
    pub const BILLING: &'static str = "billing";

    /// The pool of the concurrent requests to a provider.
    pub fn pool(provider: &str) -> String {
        format!("provider {provider}")
    }
}

impl Activity for CallModel {
    const NAME: &'static str = "call_model";
    type Input = ModelCall;
    type Output = ModelAnswer;

    fn policy(call: &ModelCall) -> Policy {
        Policy {
            start_to_close: call.api.timeout.duration() + Duration::from_mins(1),
            // Overload and a dead network: about half an hour in all.
            retry: Delays::Exponential {
                initial: Duration::from_secs(1),
                factor: 2.0,
                max: Duration::from_mins(5),
                attempts: 14,
            },
            pool: Some(Self::pool(&call.api.provider_name())),
            ..Policy::guarded()
        }
    }
}

/// Input of [`CallModel`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelCall {
    /// The project, whose root relative sources of secrets refer to.
    pub project: ProjectRef,
    /// The interface, its URL and its limits.
    pub api: ApiSettings,
    /// The source of the key, if it is not an inherited variable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<EnvSource>,
    /// The model.
    pub model: String,
    /// The context window in tokens.
    pub window: u64,
    /// The head of the chain that `new` continues; `None`: `new` begins with the
    /// [`Message::Start`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<String>,
    /// The messages since then.
    pub new: Vec<Message>,
}

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "from", rename_all = "snake_case")]
pub enum Message {
    /// The begin of a conversation: the part that every request repeats first, so that the provider
    /// can cache it.
    Start {
        /// The system prompt.
        system: String,
        /// The tools.
        tools: Vec<ToolSpec>,
    },
    /// From the harness: text, and the results of tools.
    User {
        /// Its parts, results of tools first.
        blocks: Vec<Block>,
    },
    /// From the model, verbatim.
    Model {
        /// Its parts.
        blocks: Vec<Block>,
    },
}

/// One part of a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Block {
    /// Text.
    Text {
        /// The text.
        text: String,
    },
    /// A part that only the provider understands (thinking and its signature), as it sent it.
    Opaque {
        /// A JSON object as text.
        json: String,
    },
    /// The model calls a tool.
    ToolUse(ToolCall),
    /// The result of a tool.
    ToolResult {
        /// The call that it answers.
        id: String,
        /// The result.
        text: String,
        /// Whether the tool failed.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
    },
}

/// The call of a tool by a model.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The id, which the result repeats.
    pub id: String,
    /// The tool.
    pub name: String,
    /// Its arguments: JSON as text, as the model wrote it; perhaps invalid.
    pub input: String,
}

/// A tool, as the model is told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// Its name.
    pub name: String,
    /// Its effect.
    pub description: String,
    /// The JSON Schema of its arguments, as text.
    pub schema: String,
    /// Its origin, if it is a tool of an MCP server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mcp: Option<McpTool>,
}

/// A tool of an MCP server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct McpTool {
    /// The name of the server in the settings.
    pub server: String,
    /// The name of the tool, as the server has it.
    pub name: String,
    /// Whether the server declares that it only reads, or that a repeated call does no harm.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_repeatable: bool,
}

/// Output of [`CallModel`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelAnswer {
    /// The head of the chain that ends with this answer.
    pub head: String,
    /// The parts of the answer. Empty if the request did not fit the window.
    pub blocks: Vec<Block>,
    /// Why the answer ended.
    pub stop: ModelStop,
    /// The tokens.
    pub usage: Usage,
    /// The cost in millionths of a US dollar, if the model has a price.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_micros: Option<u64>,
    /// The model, as the provider names it.
    pub model: String,
    /// The provider's id of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// The duration.
    pub duration_ms: u64,
}

/// Why an answer ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelStop {
    /// The model has finished its turn.
    EndTurn,
    /// The model waits for the results of tools.
    ToolUse,
    /// The answer reached its length limit.
    MaxTokens,
    /// The conversation does not fit the window.
    ContextFull,
    /// The model refused.
    Refusal,
    /// Another reason, as the provider names it.
    Other(String),
}

/// Tokens of one or several answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Usage {
    /// Input tokens that were neither read from nor written to the provider's cache.
    pub input: u64,
    /// Output tokens.
    pub output: u64,
    /// Input tokens read from the cache.
    pub cache_read: u64,
    /// Input tokens written to the cache.
    pub cache_write: u64,
}

impl Usage {
    /// Whether there are none.
    pub fn is_zero(&self) -> bool {
        *self == Self::default()
    }

    /// All tokens of the request and its answer: the filled part of the window after it.
    pub fn total(&self) -> u64 {
        self.input + self.output + self.cache_read + self.cache_write
    }

    /// The tokens that were not read from a cache: the large part of the cost.
    pub fn fresh(&self) -> u64 {
        self.input + self.output + self.cache_write
    }
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.input += other.input;
        self.output += other.output;
        self.cache_read += other.cache_read;
        self.cache_write += other.cache_write;
    }
}
