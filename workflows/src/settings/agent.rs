//! `[agent]`: the program or model that does the work.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, IntoDeserializer, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use super::acp::AcpSettings;
use super::env::{self, EnvSource};
use super::sandbox::{Confinement, NetworkAccess, SandboxMode};
use super::{Seconds, is_default};

/// The driver that runs the sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Driver {
    /// Any program: `[agent] command`. Its exit code is its claim.
    #[default]
    Command,
    /// Claude Code.
    Claude,
    /// Codex.
    Codex,
    /// opencode.
    Opencode,
    /// Any program that speaks the Agent Client Protocol: `[agent] command`.
    Acp,
    /// Longhaul's own agent, over the API of a model: `[agent.api]`.
    Api,
}

impl Driver {
    /// All drivers.
    pub const ALL: [Self; 6] =
        [Self::Command, Self::Claude, Self::Codex, Self::Opencode, Self::Acp, Self::Api];

    /// Its name in the settings.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Command => "command",
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Opencode => "opencode",
            Self::Acp => "acp",
            Self::Api => "api",
        }
    }
}

/// The HTTP interface of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// Anthropic's Messages API.
    #[default]
    Anthropic,
    /// Chat completions, as of OpenAI, vLLM, Ollama and llama.cpp.
    Openai,
}

/// `[agent.api]`: the model of the built-in agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ApiSettings {
    /// The interface.
    pub protocol: Protocol,
    /// The URL before `/v1/…`; by default that of the provider.
    pub url: Option<String>,
    /// The name of the provider, whose limits all projects share; by default its host, and the
    /// variable of the key if that is set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// The environment variable with the key; by default that of the provider, and none if that
    /// variable is not set and `url` is given.
    pub key_env: Option<String>,
    /// The model that summarises; by default the one that works.
    pub summary_model: Option<String>,
    /// The most tokens of an answer.
    pub max_output: u64,
    /// The timeout of a model call.
    pub timeout: Seconds,
}

impl Default for ApiSettings {
    fn default() -> Self {
        Self {
            protocol: Protocol::Anthropic,
            url: None,
            provider: None,
            key_env: None,
            summary_model: None,
            max_output: 8192,
            timeout: Seconds(600),
        }
    }
}

impl ApiSettings {
    /// The name of the provider: as configured, else `HOST` or `HOST:PORT`, then ` KEY_ENV` if that
    /// is configured, because limits are those of an account.
    pub fn provider_name(&self) -> String {
        if let Some(name) = &self.provider {
            return name.clone();
        }
        let host = match (&self.url, self.protocol) {
            (Some(url), _) => host_of(url),
            (None, Protocol::Anthropic) => "api.anthropic.com",
            (None, Protocol::Openai) => "api.openai.com",
        };
        match &self.key_env {
            Some(key) => format!("{host} {key}"),
            None => host.to_owned(),
        }
    }

    /// The environment variable with the key.
    pub fn key_name(&self) -> &str {
        let default = match self.protocol {
            Protocol::Anthropic => "ANTHROPIC_API_KEY",
            Protocol::Openai => "OPENAI_API_KEY",
        };
        self.key_env.as_deref().unwrap_or(default)
    }
}

/// The host and the port of a URL, without the user and the password that it may name.
fn host_of(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    authority.rsplit('@').next().unwrap_or_default()
}

/// `[agent.context]`: the size of the context window, and what happens as it fills. The thresholds
/// are parts of the window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ContextSettings {
    /// The window in tokens. By default what the provider states, at most
    /// [`ContextSettings::WINDOW`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<u64>,
    /// Where a checkpoint is taken.
    pub checkpoint_at: f64,
    /// Where the conversation is summarised.
    pub compact_at: f64,
    /// Where a fresh session takes over.
    pub handoff_at: f64,
    /// The most summaries in one session; the next threshold is a handoff.
    pub compactions: u32,
}

impl Eq for ContextSettings {}

impl ContextSettings {
    /// The largest window that is used unless the settings name one. Each call of a model pays for
    /// all that is in the window.
    pub const WINDOW: u64 = 200_000;

    /// The window to use, with a provider that may state one.
    pub fn window_of(&self, stated: Option<u64>) -> u64 {
        self.window.unwrap_or_else(|| stated.unwrap_or(Self::WINDOW).min(Self::WINDOW))
    }
}

impl Default for ContextSettings {
    fn default() -> Self {
        Self {
            window: None,
            checkpoint_at: 0.70,
            compact_at: 0.85,
            handoff_at: 0.90,
            compactions: 3,
        }
    }
}

/// `[agent.hooks]`: commands at points of a session of the built-in agent. Each gets the event as
/// JSON on its standard input; exit code 2 refuses, and its output is the reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HookSettings {
    /// Before a tool call; a refused one is not performed, and the model reads the reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before_tool: Option<String>,
    /// After a tool call; the model reads the reason of a refusal with the result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after_tool: Option<String>,
    /// Before a summary replaces a conversation whose window is nearly full; the model reads the
    /// reason of a refusal before it summarises.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before_overflow: Option<String>,
    /// Before a handoff; if it is refused, the session summarises and goes on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handoff: Option<String>,
    /// When the model claims that the feature is done; if it is refused, the session goes on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_end: Option<String>,
    /// The timeout of a hook.
    pub timeout: Seconds,
}

impl Default for HookSettings {
    fn default() -> Self {
        Self {
            before_tool: None,
            after_tool: None,
            before_overflow: None,
            handoff: None,
            session_end: None,
            timeout: Seconds(60),
        }
    }
}

/// `[agent.mcp.NAME]`: an MCP server, whose tools the agent gets.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct McpSettings {
    /// The program and its arguments, which speak the protocol on standard input and output. A
    /// program with a slash in it is relative to the root of the user's checkout.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// The address of a server that runs elsewhere, instead of a command: streamable HTTP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The environment variable with the key of that server, sent as a bearer token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_env: Option<String>,
}

/// Reads `agent = "claude"` as a table with that driver.
pub(super) fn by_name_or_table<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<AgentSettings, D::Error> {
    deserializer.deserialize_any(NameOrTable)
}

struct NameOrTable;

impl<'de> Visitor<'de> for NameOrTable {
    type Value = AgentSettings;

    fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str("a table, or the name of a driver")
    }

    fn visit_str<E: de::Error>(self, name: &str) -> Result<AgentSettings, E> {
        let driver = Driver::deserialize(name.into_deserializer())?;
        Ok(AgentSettings { driver, ..AgentSettings::default() })
    }

    fn visit_map<A: MapAccess<'de>>(self, table: A) -> Result<AgentSettings, A::Error> {
        AgentSettings::deserialize(MapAccessDeserializer::new(table))
    }
}

/// `[agent]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AgentSettings {
    /// The driver that runs the sessions.
    #[serde(skip_serializing_if = "is_default")]
    pub driver: Driver,
    /// The model, by the name that the driver knows; by default the choice of the program. The
    /// driver `api` needs it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The name of the provider of another agent than the built-in one, whose limits all projects
    /// share.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// Further arguments of the program that the driver starts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// The model of the driver `api`.
    #[serde(skip_serializing_if = "is_default")]
    pub api: ApiSettings,
    /// The driver `acp`.
    #[serde(skip_serializing_if = "is_default")]
    pub acp: AcpSettings,
    /// The context window.
    #[serde(skip_serializing_if = "is_default")]
    pub context: ContextSettings,
    /// Commands at points of a session of the driver `api`.
    #[serde(skip_serializing_if = "is_default")]
    pub hooks: HookSettings,
    /// MCP servers of the drivers `api` and `acp`, by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub mcp: BTreeMap<String, McpSettings>,
    /// The program and its arguments. A program with a slash in it is relative to the root of the
    /// user's checkout. With the driver of a known agent: its program, by default the one with the
    /// name of the driver, and arguments before those of the driver.
    pub command: Vec<String>,
    /// The timeout of a session.
    pub timeout: Seconds,
    /// The longest time without a sign of life: output, a changed file in its tree, or CPU time.
    pub silence_timeout: Seconds,
    /// Variables passed to it, without their values: the log holds names and sources only.
    #[serde(deserialize_with = "env::map")]
    pub env: BTreeMap<String, EnvSource>,
    /// Names of variables inherited besides the usual ones.
    pub pass_env: Vec<String>,
    /// Whether it, the set-up script and the checks run in a sandbox.
    #[serde(skip_serializing_if = "is_default")]
    pub sandbox: SandboxMode,
    /// Its network access.
    #[serde(skip_serializing_if = "is_default")]
    pub network: NetworkAccess,
    /// Paths that the programs of the project may write besides their own, `~/` for the home
    /// directory. By default: the state of known agents and package caches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write: Option<Vec<String>>,
}

impl AgentSettings {
    /// The words that identify the agent where its failures are counted: its command, or its
    /// driver, program and model.
    pub fn identity(&self) -> Vec<String> {
        if self.driver == Driver::Command {
            return self.command.clone();
        }
        let driver = [self.driver.as_str().to_owned()];
        driver.into_iter().chain(self.command.clone()).chain(self.model.clone()).collect()
    }

    /// The setting that names its program.
    pub fn program_key(&self) -> &'static str {
        if self.command.is_empty() { "driver" } else { "command" }
    }

    /// The access of a session to network and files.
    pub fn confinement(&self) -> Confinement {
        Confinement {
            sandbox: self.sandbox,
            network: self.network,
            write: self.write.clone(),
            held_out: None,
        }
    }
}

impl Default for AgentSettings {
    fn default() -> Self {
        Self {
            driver: Driver::Command,
            model: None,
            provider: None,
            args: Vec::new(),
            api: ApiSettings::default(),
            acp: AcpSettings::default(),
            context: ContextSettings::default(),
            hooks: HookSettings::default(),
            mcp: BTreeMap::new(),
            command: Vec::new(),
            timeout: Seconds(3600),
            silence_timeout: Seconds(900),
            env: BTreeMap::new(),
            pass_env: Vec::new(),
            sandbox: SandboxMode::Auto,
            network: NetworkAccess::On,
            write: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_provider_is_named_by_its_host_and_key_and_never_by_a_password() {
        let name = |url: Option<&str>, key: Option<&str>| {
            let url = url.map(str::to_owned);
            let key_env = key.map(str::to_owned);
            ApiSettings { url, key_env, ..ApiSettings::default() }.provider_name()
        };
        assert_eq!(name(None, None), "api.anthropic.com");
        assert_eq!(name(None, Some("TEAM_KEY")), "api.anthropic.com TEAM_KEY");
        assert_eq!(name(Some("http://me:secret@127.0.0.1:8000/v1"), None), "127.0.0.1:8000");
    }
}
