//! Hooks of the user: commands that watch a session, and may refuse its next step.

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use longhaul_engine::{Attempt, Failure, Handler};
use longhaul_workflows::contracts::{HookInput, HookOutcome, RunHook};
use serde_json::{Value, json};

use super::ToolHandler;
use super::ready::tree_request;
use super::shell::Command;
use super::tool_tree::Fault;
use crate::git::GitHandlers;
use crate::mcp::McpServers;
use crate::process::Supervisor;

/// The exit code of a refusal.
const REFUSED: i32 = 2;

/// Runs hooks, in the same way as the tools of the agent.
#[derive(Debug, Clone)]
pub struct HookHandler(ToolHandler);

impl HookHandler {
    /// A handler that keeps its files in a data directory, which must exist.
    pub fn new(data_dir: impl AsRef<Path>, supervisor: Supervisor, git: GitHandlers) -> Self {
        Self(ToolHandler::new(data_dir, supervisor, git, McpServers::default()))
    }
}

#[async_trait]
impl Handler<RunHook> for HookHandler {
    async fn perform(&self, input: HookInput, attempt: &Attempt) -> Result<HookOutcome, Failure> {
        self.0.setup.runner.end_call(&attempt.key()).await?;
        match self.0.run_hook(&input, attempt).await {
            Ok(refusal) => Ok(HookOutcome { refusal }),
            Err(Fault::Tool(text)) => {
                Ok(HookOutcome { refusal: Some(format!("the hook could not run: {text}")) })
            }
            Err(Fault::Call(failure)) => Err(failure),
        }
    }
}

impl ToolHandler {
    async fn run_hook(
        &self,
        input: &HookInput,
        attempt: &Attempt,
    ) -> Result<Option<String>, Fault> {
        let subject = &input.subject;
        let variables = Arc::new(self.variables(subject).map_err(super::fault_of)?);
        let ready =
            self.ready(&tree_request(subject, attempt), false).await.map_err(Fault::Call)?;
        let event = ready.tree.records().join("hook-event.json");
        let written = std::fs::write(&event, document(input).to_string());
        written
            .map_err(|error| Fault::Tool(format!("{} is not written: {error}", event.display())))?;
        let command = Command {
            input: subject,
            text: &input.command,
            timeout: Some(subject.agent.hooks.timeout.0),
            stdin: Some(event),
            variables: &variables,
        };
        let ran = self.shell(command, &ready.tree, attempt).await?;
        let output = ran.output.trim().to_owned();
        Ok(match ran.finished.exit_code {
            Some(0) => None,
            Some(REFUSED) => Some(output),
            _ => Some(format!("the hook failed ({}). {output}", ran.finished.ending())),
        })
    }
}

/// The event for the hook.
fn document(input: &HookInput) -> Value {
    let call = &input.subject.call;
    let arguments: Value = serde_json::from_str(&call.input).unwrap_or(Value::Null);
    let mut document = json!({
        "event": input.event,
        "session": input.session,
        "feature": input.subject.feature,
    });
    if !call.name.is_empty() {
        document["tool"] = json!({ "name": call.name, "arguments": arguments });
    }
    if let Some(result) = &input.result {
        document["result"] = json!({ "text": result.text, "is_error": result.is_error });
    }
    document
}
