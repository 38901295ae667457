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

use longhaul_workflows::settings::{AgentSettings, McpSettings};
use serde_json::{Value, json};

use super::environment::AgentEnvironment;
use super::{Abilities, AgentDriver, Dialogue, Launch, Reader};
use crate::longhaul_toml::agent_env;
use crate::mcp::key_of;

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

/// The MCP servers of the settings, which the agent starts or connects to.
fn servers(agent: &AgentSettings, root: &Path, takes_http: bool) -> Result<Vec<Value>, String> {
    let mut env = None;
    let server = |(name, server): (&String, &McpSettings)| {
        let Some(url) = &server.url else {
            let (program, args) = server.command.split_first().unwrap_or((name, &[]));
            let program = if program.contains('/') {
                root.join(program).to_string_lossy().into_owned()
            } else {
                program.clone()
            };
            return Ok(json!({ "name": name, "command": program, "args": args, "env": [] }));
        };
        if !takes_http {
            return Err(format!(
                "the agent takes no MCP servers over HTTP; remove [agent.mcp.{name}]"
            ));
        }
        if env.is_none() {
            env = Some(agent_env(root, &agent.env).map_err(|failure| failure.message)?);
        }
        let given = |name: &str| env.as_ref()?.get(name).cloned();
        let key = key_of(name, server, given).map_err(|failure| failure.message)?;
        let header = |key| json!({ "name": "Authorization", "value": format!("Bearer {key}") });
        let headers: Vec<_> = key.map(header).into_iter().collect();
        Ok(json!({ "type": "http", "name": name, "url": url, "headers": headers }))
    };
    agent.mcp.iter().map(server).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_over_http_is_for_agents_that_take_one() {
        let mut agent = AgentSettings::default();
        let settings = McpSettings { url: Some("http://x/mcp".into()), ..McpSettings::default() };
        agent.mcp.insert("docs".into(), settings);
        let refused = servers(&agent, Path::new("/"), false);
        assert_eq!(
            refused,
            Err("the agent takes no MCP servers over HTTP; remove [agent.mcp.docs]".to_owned())
        );
        let given = servers(&agent, Path::new("/"), true).expect("it takes one");
        let expected =
            json!([{ "type": "http", "name": "docs", "url": "http://x/mcp", "headers": [] }]);
        assert_eq!(Value::from(given), expected);
    }
}
