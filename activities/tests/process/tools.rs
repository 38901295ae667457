//! The tools of the built-in agent.

mod attacks;
mod crash;
mod files;
mod shell;

use longhaul_activities::git::GitHandlers;
use longhaul_activities::mcp::McpServers;
use longhaul_activities::tools::ToolHandler;
use longhaul_engine::{Failure, Handler, Probe};
use longhaul_workflows::contracts::{ToolCall, ToolOutcome, ToolUse, UseTool};
use longhaul_workflows::settings::AgentSettings;
use serde_json::{Value, json};

use super::support::{World, attempt, login, supervisor};

/// A model's hands in a work tree that is open and set up.
struct Tools {
    world: World,
    handler: ToolHandler,
    agent: AgentSettings,
    held_out: Option<String>,
}

impl Tools {
    async fn new() -> Self {
        let world = World::with_git().await;
        let handler = ToolHandler::new(
            world.path("data"),
            supervisor(),
            world.handlers(),
            McpServers::default(),
        );
        let tools = Self { world, handler, agent: AgentSettings::default(), held_out: None };
        assert_eq!(
            tools.says("list", json!({})).await,
            ".git/\n.gitignore\ncode.txt\nlonghaul.toml\n"
        );
        tools
    }

    /// The next process with the same data directory.
    fn after_crash(&self) -> ToolHandler {
        let data = self.world.path("data");
        ToolHandler::new(&data, supervisor(), GitHandlers::new(&data), McpServers::default())
    }

    fn input(&self, name: &str, args: &Value) -> ToolUse {
        ToolUse {
            project: self.world.project(),
            feature: login(),
            agent: self.agent.clone(),
            held_out: self.held_out.clone(),
            call: ToolCall { id: "1".into(), name: name.into(), input: args.to_string() },
            mcp: None,
        }
    }

    async fn try_at(&self, slot: u32, name: &str, args: Value) -> Result<ToolOutcome, Failure> {
        self.handler.perform(self.input(name, &args), &attempt("shop/login", slot)).await
    }

    async fn outcome(&self, name: &str, args: Value) -> ToolOutcome {
        self.try_at(3, name, args).await.unwrap()
    }

    /// The answer of a tool that succeeds.
    async fn says(&self, name: &str, args: Value) -> String {
        let outcome = self.outcome(name, args).await;
        assert!(!outcome.is_error, "{outcome:?}");
        outcome.text
    }

    /// The answer of a tool that fails.
    async fn refuses(&self, name: &str, args: Value) -> String {
        let outcome = self.outcome(name, args).await;
        assert!(outcome.is_error, "{outcome:?}");
        outcome.text
    }

    async fn probe(&self, slot: u32, name: &str, args: Value) -> Probe<ToolOutcome> {
        let handler = self.after_crash();
        let input = self.input(name, &args);
        Handler::<UseTool>::probe(&handler, input, &attempt("shop/login", slot)).await
    }
}
