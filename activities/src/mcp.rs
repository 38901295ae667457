//! Tools of MCP servers for the built-in agent.
//!
//! A server is connected to when a session first calls it, and until the session ends. After a
//! crash it is started again, and the model is told. For the list of tools at the start of a
//! session it has a connection of its own.

mod connection;
mod http;
mod kept;
mod output;

use std::path::Path;
use std::time::Duration;

use longhaul_engine::{Attempt, Failure};
use longhaul_workflows::contracts::{McpTool, ToolSpec};
use longhaul_workflows::settings::{AgentSettings, Confinement, Driver};
use rmcp::model::{CallToolRequestParams, CallToolResult, ContentBlock, JsonObject, Tool};
use rmcp::service::{RoleClient, RunningService};

use crate::checks::SetUp;
use crate::confine::{ConfinedPaths, sandbox};
use crate::model::client::Clients;
use crate::obstacle::{Obstacle, why_not};
use crate::process::{Environment, Fifo, Limits, Spec};

pub(crate) use http::key_of;
pub use kept::McpServers;

use connection::Connection;
use kept::Key;

/// The result of a tool.
pub(crate) struct ToolResult {
    pub(crate) text: String,
    pub(crate) is_error: bool,
    /// Whether the server was started or connected to for this call.
    pub(crate) is_first: bool,
}

/// The time for one answer.
const PATIENCE: Duration = Duration::from_mins(10);
/// The longest name of a tool that providers accept.
const LONGEST_NAME: usize = 64;
/// The most tools of a server.
const MOST_TOOLS: usize = 128;

/// Where and how servers run.
pub(crate) struct Host<'a> {
    pub(crate) setup: &'a SetUp,
    pub(crate) root: &'a Path,
    pub(crate) tree: &'a Path,
    pub(crate) agent: &'a AgentSettings,
    pub(crate) held_out: Option<String>,
    /// The environment of the agent.
    pub(crate) env: Environment,
    pub(crate) attempt: &'a Attempt,
    /// The HTTP clients of the handler: a new one would read the certificates of the system.
    pub(crate) clients: &'a Clients,
}

type Client = RunningService<RoleClient, ()>;

/// Why a server of the settings cannot be started. Nothing is started.
pub fn problem(root: &Path, agent: &AgentSettings) -> Option<Obstacle> {
    if !matches!(agent.driver, Driver::Api | Driver::Acp) {
        return None;
    }
    agent.mcp.iter().find_map(|(name, server)| {
        if !is_name(name) {
            let problem = format!("[agent.mcp.{name}] is no name of a server");
            return Some(Obstacle::new(problem, "use letters, digits and `_`"));
        }
        if let Some(url) = &server.url {
            return http::problem(name, server, url);
        }
        let Some(program) = server.command.first() else {
            let problem = format!("[agent.mcp.{name}] has neither `command` nor `url`");
            return Some(Obstacle::new(problem, "give the program, or the address of the server"));
        };
        let why = why_not(root, program)?;
        let problem = format!("`{program}` of [agent.mcp.{name}] {why}");
        Some(Obstacle::new(problem, "install it, or correct `command`"))
    })
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

impl Host<'_> {
    /// The tools of all servers, in the order of the servers' names and their own.
    ///
    /// # Errors
    /// A terminal failure if a server cannot be started or does not answer.
    pub(crate) async fn tools(&self) -> Result<Vec<ToolSpec>, Failure> {
        if let Some(problem) = problem(self.root, self.agent) {
            return Err(Failure::terminal(problem.to_string()));
        }
        let mut specs = Vec::new();
        for server in self.agent.mcp.keys() {
            let mut connection = self.connect(server).await?;
            let list = async |client: &Client| client.list_all_tools().await;
            let listed = self.speak(server, &mut connection, list).await;
            connection.close().await;
            let mut tools = listed?;
            tools.sort_by(|one, other| one.name.cmp(&other.name));
            tools.truncate(MOST_TOOLS);
            specs.extend(tools.iter().filter_map(|tool| spec(server, tool)));
        }
        Ok(specs)
    }

    /// Calls a tool, on the connection that the session has to the server.
    ///
    /// # Errors
    /// A terminal failure if the server cannot be started or does not answer.
    pub(crate) async fn call(
        &self,
        servers: &McpServers,
        tool: &McpTool,
        arguments: JsonObject,
    ) -> Result<ToolResult, Failure> {
        let key = Key { session: self.attempt.run.clone(), server: tool.server.clone() };
        let (mut connection, is_first) = match servers.take(&key) {
            Some(connection) if !connection.has_ended() => (connection, false),
            ended => {
                if let Some(ended) = ended {
                    ended.kill().await;
                }
                (self.connect(&tool.server).await?, true)
            }
        };
        let params = CallToolRequestParams::new(tool.name.clone()).with_arguments(arguments);
        let call = async move |client: &Client| client.call_tool(params).await;
        match self.speak(&tool.server, &mut connection, call).await {
            Ok(result) => {
                servers.keep(key, connection, self.tree);
                let is_error = result.is_error.unwrap_or_default();
                Ok(ToolResult { text: text(&result), is_error, is_first })
            }
            Err(failure) => {
                connection.kill().await;
                Err(failure)
            }
        }
    }

    /// Connects to a server.
    async fn connect(&self, server: &str) -> Result<Connection, Failure> {
        if let Some(settings) = self.agent.mcp.get(server)
            && let Some(url) = &settings.url
        {
            let client = self.connect_over_http(server, settings, url).await?;
            return Ok(Connection::over_http(client));
        }
        let name = format!("mcp-{server}");
        let input = Fifo::new(self.setup.runner.data_dir()).map_err(|error| {
            Failure::machine(format!("the input of the MCP server {server} is not made: {error}"))
        })?;
        let spec = self.spec(server, &name, &input)?;
        let connecting = Connection::to_program(&self.setup.runner, spec, input, self.attempt);
        tokio::select! {
            connected = connecting => connected?.map_err(|why| self.failed(server, &why)),
            () = self.attempt.cancelled() => Err(Failure::cancelled()),
        }
    }

    async fn speak<T>(
        &self,
        server: &str,
        connection: &mut Connection,
        speak: impl AsyncFnOnce(&Client) -> Result<T, rmcp::ServiceError>,
    ) -> Result<T, Failure> {
        tokio::select! {
            spoken = connection.speak(speak) => spoken?.map_err(|why| self.failed(server, &why)),
            () = self.attempt.cancelled() => Err(Failure::cancelled()),
        }
    }

    fn failed(&self, server: &str, why: &str) -> Failure {
        let url = self.agent.mcp.get(server).and_then(|settings| settings.url.as_deref());
        let at = url.map(|url| format!(" at {url}")).unwrap_or_default();
        Failure::terminal(format!("the MCP server `{server}`{at} {why}"))
    }

    fn spec(&self, server: &str, name: &str, fifo: &Fifo) -> Result<Spec, Failure> {
        let unknown = || Failure::terminal(format!("there is no [agent.mcp.{server}]"));
        let settings = self.agent.mcp.get(server).ok_or_else(unknown)?;
        let (program, args) = settings.command.split_first().ok_or_else(unknown)?;
        let program = if program.contains('/') {
            self.root.join(program).into_os_string()
        } else {
            program.into()
        };
        let data_dir = self.setup.runner.data_dir();
        let places =
            ConfinedPaths { root: self.root, tree: self.tree, data_dir, sees_held_out: false };
        let confinement =
            Confinement { held_out: self.held_out.clone(), ..self.agent.confinement() };
        let sandbox = sandbox(&places, Some(Path::new(&program)), &self.env, &confinement)?;
        Ok(Spec {
            name: name.into(),
            program,
            args: args.iter().map(Into::into).collect(),
            directory: self.tree.into(),
            env: self.env.clone(),
            input: Some(fifo.path()),
            sandbox,
            limits: Limits { total: None, silence: None },
            remedy: "Correct `command` under [agent.mcp].",
        })
    }
}

fn no_answer() -> String {
    format!("gave no answer for {} s", PATIENCE.as_secs())
}

/// A tool for a model. One whose name no provider accepts is left out.
fn spec(server: &str, tool: &Tool) -> Option<ToolSpec> {
    let plain = |letter: char| {
        if letter.is_ascii_alphanumeric() || "_-".contains(letter) { letter } else { '_' }
    };
    let name: String = format!("mcp__{server}__{}", tool.name).chars().map(plain).collect();
    if name.len() > LONGEST_NAME {
        tracing::warn!(server, tool = %tool.name, "the name of a tool is too long; it is left out");
        return None;
    }
    let hints = tool.annotations.as_ref();
    let is_repeatable = hints.is_some_and(|hints| {
        hints.read_only_hint == Some(true) || hints.idempotent_hint == Some(true)
    });
    let schema = serde_json::to_string(&*tool.input_schema).ok()?;
    let description = tool.description.as_deref().unwrap_or_default().to_owned();
    let server = server.to_owned();
    let tool = tool.name.to_string();
    let mcp = Some(McpTool { server, name: tool, is_repeatable });
    Some(ToolSpec { name, description, schema, mcp })
}

/// The content of a result; of other kinds than text only the kind.
fn text(result: &CallToolResult) -> String {
    let parts = result.content.iter().map(|part| match part {
        ContentBlock::Text(text) => text.text.clone(),
        ContentBlock::Image(image) => format!("[an image: {}]", image.mime_type),
        ContentBlock::Audio(audio) => format!("[audio: {}]", audio.mime_type),
        other => serde_json::to_string(other).unwrap_or_default(),
    });
    let parts: Vec<_> = parts.collect();
    match &result.structured_content {
        Some(value) if parts.is_empty() => value.to_string(),
        _ => parts.join("\n"),
    }
}
