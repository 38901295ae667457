//! A tool call of the built-in agent.

use std::time::Duration;

use longhaul_engine::{Activity, Delays, Policy};
use serde::{Deserialize, Serialize};

use crate::backlog::FeatureId;
use crate::settings::AgentSettings;

use super::{McpTool, ProjectRef, ToolCall};

/// Performs a tool call in a work tree. A failed tool is an answer, not a failure of the activity:
/// the model reads it.
///
/// Reading and editing tools are idempotent. A shell command is guarded: if the engine crashed
/// while it ran, the probe answers that its outcome is unknown, and the model decides. So is a call
/// of a tool of an MCP server, unless the server declares that it may be repeated.
#[derive(Debug)]
pub struct UseTool;

impl Activity for UseTool {
    const NAME: &'static str = "use_tool";
    type Input = ToolUse;
    type Output = ToolOutcome;

    fn policy(input: &ToolUse) -> Policy {
        let is_repeatable = match &input.mcp {
            Some(tool) => tool.is_repeatable,
            None => input.call.name != ToolUse::SHELL,
        };
        let policy = if is_repeatable {
            Policy::idempotent()
        } else {
            Policy { retry: Delays::none(), ..Policy::guarded() }
        };
        // The tool has its own timeout; this one is the last resort.
        Policy { start_to_close: input.agent.timeout.duration() + Duration::from_mins(5), ..policy }
    }
}

/// Input of [`UseTool`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolUse {
    /// The project.
    pub project: ProjectRef,
    /// The feature.
    pub feature: FeatureId,
    /// The agent: its environment, its sandbox and its limits.
    pub agent: AgentSettings,
    /// The directory of held-out checks, hidden from the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_out: Option<String>,
    /// The call.
    pub call: ToolCall,
    /// The tool of an MCP server, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mcp: Option<McpTool>,
}

impl ToolUse {
    /// The tool that runs a command.
    pub const SHELL: &'static str = "shell";
}

/// Output of [`UseTool`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolOutcome {
    /// The text for the model, within the size limit.
    pub text: String,
    /// Whether the tool failed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
    /// The duration.
    pub duration_ms: u64,
}

activity! {
    /// Runs a hook of the user in the work tree, in the sandbox of the agent. A hook that fails is
    /// a refusal: it may be there for protection.
    RunHook = "run_hook": HookInput => HookOutcome, Policy {
        retry: Delays::none(),
        ..Policy::idempotent()
    }
}

/// Input of [`RunHook`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HookInput {
    /// The place, the agent, and the tool call, if the event is about one.
    pub subject: ToolUse,
    /// The command, for a shell.
    pub command: String,
    /// The event.
    pub event: HookEvent,
    /// The session.
    pub session: String,
    /// The result of the tool call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<ToolOutcome>,
}

/// A point of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HookEvent {
    /// Before a tool call.
    BeforeTool,
    /// After a tool call.
    AfterTool,
    /// Before a summary, because the window is nearly full.
    BeforeOverflow,
    /// Before a handoff.
    Handoff,
    /// At the end of the session.
    SessionEnd,
}

/// Output of [`RunHook`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookOutcome {
    /// Why the hook refuses, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refusal: Option<String>,
}
