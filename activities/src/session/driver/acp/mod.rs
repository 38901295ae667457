//! Any agent that speaks the Agent Client Protocol, version 1, on standard input and output.
//!
//! The client is a state machine over lines, without the crate `agent-client-protocol`: that starts
//! the agent itself, and here a supervisor does, in the sandbox. The same reader makes the
//! transcript of a log, where only the lines of the agent are. So the ids of requests are
//! constants.
//!
//! The protocol has no type for a full window, a limited rate or a missing login: [`end`] reads
//! what agents add.

mod end;
mod permission;
mod reader;
mod update;

use std::path::Path;

use longhaul_workflows::settings::AgentSettings;
use serde_json::{Value, json};

use super::environment::AgentEnvironment;
use super::{Abilities, AgentDriver, Dialogue, Launch, Reader};

use reader::AcpReader;
pub(super) use reader::{Answer, initialize};

#[derive(Debug)]
pub(super) struct Acp;

impl AgentDriver for Acp {
    fn name(&self) -> &'static str {
        "acp"
    }

    fn abilities(&self) -> Abilities {
        Abilities { chooses_conversation: false, reports_whole_usage: false, has_version: false }
    }

    fn args(&self, launch: &Launch<'_>) -> Vec<String> {
        launch.args.to_vec()
    }

    fn env(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    fn pass_env(&self) -> &'static [&'static str] {
        &[]
    }

    fn reader(&self) -> Box<dyn Reader> {
        Box::new(AcpReader::new(None))
    }

    fn speaker(&self, dialogue: Dialogue) -> Option<Box<dyn Reader>> {
        Some(Box::new(AcpReader::new(Some(dialogue))))
    }

    fn login(&self) -> &'static str {
        "log in with its own command, name the variable of its key in [agent] pass_env, or set \
         `login` under [agent.acp]"
    }

    fn permissions(&self) -> &'static str {
        "`allow` of [agent.acp]"
    }

    fn is_logged_in(&self, _given: &AgentEnvironment<'_>) -> Option<bool> {
        None
    }
}

/// The MCP servers of the settings, for the agent to start.
fn servers(agent: &AgentSettings, root: &Path) -> Vec<Value> {
    let server = |(name, server): (&String, &longhaul_workflows::settings::McpSettings)| {
        let (program, args) = server.command.split_first()?;
        let program = if program.contains('/') {
            root.join(program).to_string_lossy().into_owned()
        } else {
            program.clone()
        };
        Some(json!({ "name": name, "command": program, "args": args, "env": [] }))
    };
    agent.mcp.iter().filter_map(server).collect()
}
