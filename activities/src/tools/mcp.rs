//! Calls of tools of MCP servers.

use std::path::Path;

use longhaul_engine::{Attempt, Failure};
use longhaul_workflows::contracts::{McpTool, ToolUse};

use crate::mcp::{Host, ToolResult};
use crate::process::Environment;

use super::ready::tree_request;
use super::shell::fault_of;
use super::text::HeadAndTail;
use super::tool_tree::Fault;
use super::{Answer, ToolHandler, Variables};

/// The most bytes of an answer.
const BYTES: usize = 16 * 1024;

impl ToolHandler {
    /// Calls a tool of a server, which may change the tree.
    pub(super) async fn call_mcp(
        &self,
        input: &ToolUse,
        tool: &McpTool,
        variables: &Variables,
        attempt: &Attempt,
    ) -> Result<Answer, Fault> {
        let arguments = match input.call.input.trim() {
            "" => Ok(serde_json::Map::new()),
            text => serde_json::from_str(text),
        };
        let arguments = arguments
            .map_err(|error| Fault::Tool(format!("The arguments are no JSON object: {error}.")))?;
        let wanted = tree_request(input, attempt);
        let ready = tokio::select! {
            ready = self.ready(&wanted, false) => ready.map_err(Fault::Call)?,
            () = attempt.cancelled() => return Err(Fault::Call(Failure::cancelled())),
        };
        let root = self.setup.git.root_of(&input.project);
        ready.tree.begin_use().map_err(Fault::Call)?;
        let host = Host {
            setup: &self.setup,
            root: &root,
            tree: ready.tree.path(),
            agent: &input.agent,
            held_out: input.held_out.clone(),
            env: Environment::chosen(&input.agent.pass_env).with_all(&variables.env),
            attempt,
            clients: &self.clients,
        };
        let called = host.call(&self.servers, tool, arguments).await;
        ready.tree.settle().await.map_err(Fault::Call)?;
        let answer = called.map_err(fault_of).map(|ToolResult { text, is_error, is_first }| {
            let bytes = text.as_bytes();
            let needed = HeadAndTail::needed(BYTES, &variables.secrets).min(bytes.len());
            let first = bytes[..needed].to_vec();
            let last = bytes[bytes.len() - needed..].to_vec();
            let ends = HeadAndTail { first, last, length: bytes.len() as u64 };
            let mut text = ends.text(BYTES, &variables.secrets);
            if is_first && was_used(ready.tree.records(), attempt, &tool.server) {
                let name = &tool.server;
                text =
                    format!("[The server {name} was started again: what it held is lost.]\n{text}");
            }
            Answer { text, is_error }
        });
        ready.with_notice(answer)
    }
}

/// Whether a session used a server before; from now on it has.
fn was_used(records: &Path, attempt: &Attempt, server: &str) -> bool {
    let session = attempt.run.as_str();
    let record = records.join(format!("mcp-{server}"));
    let was_used = std::fs::read(&record).is_ok_and(|last| last == session.as_bytes());
    // Without the record only the notice is missing.
    let _ = std::fs::write(&record, session);
    was_used
}
