//! Tools of MCP servers for the built-in agent.
//!
//! A server runs in the sandbox of the agent, for one exchange: for the list of its tools at the
//! start of a session, and for each call. So no crash can take its state back, and it ends with the
//! call. Its standard output reaches the client through an observer. A server with an address runs
//! elsewhere; it is connected to for one exchange, too.

mod http;
mod output;

use std::path::Path;
use std::time::Duration;

use longhaul_engine::{Attempt, Failure};
use longhaul_workflows::contracts::{McpTool, ToolSpec};
use longhaul_workflows::settings::{AgentSettings, Confinement, Driver};
use rmcp::ServiceExt as _;
use rmcp::model::{CallToolRequestParams, CallToolResult, ContentBlock, JsonObject, Tool};
use rmcp::service::{RoleClient, RunningService};
use tokio::sync::oneshot;

use crate::checks::SetUp;
use crate::confine::{ConfinedPaths, sandbox};
use crate::model::client::Clients;
use crate::obstacle::{Obstacle, why_not};
use crate::process::{Environment, Fifo, Limits, Spec, logs_of};

pub(crate) use http::key_of;
use output::output;

/// The result of a tool.
pub(crate) struct ToolResult {
    pub(crate) text: String,
    pub(crate) is_error: bool,
}

/// The timeout of one exchange.
const TIMEOUT: Duration = Duration::from_mins(10);
/// The time in which a server has to end once its input is closed.
const GRACE: Duration = Duration::from_secs(5);
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
            let mut tools =
                self.exchange(server, async |client| client.list_all_tools().await).await?;
            tools.sort_by(|one, other| one.name.cmp(&other.name));
            tools.truncate(MOST_TOOLS);
            specs.extend(tools.iter().filter_map(|tool| spec(server, tool)));
        }
        Ok(specs)
    }

    /// Calls a tool.
    pub(crate) async fn call(
        &self,
        tool: &McpTool,
        arguments: JsonObject,
    ) -> Result<ToolResult, Failure> {
        let params = CallToolRequestParams::new(tool.name.clone()).with_arguments(arguments);
        let call = async move |client: &Client| client.call_tool(params).await;
        let result = self.exchange(&tool.server, call).await?;
        let is_error = result.is_error.unwrap_or_default();
        Ok(ToolResult { text: text(&result), is_error })
    }

    /// Connects to a server and speaks to it.
    async fn exchange<T>(
        &self,
        server: &str,
        speak: impl AsyncFnOnce(&Client) -> Result<T, rmcp::ServiceError>,
    ) -> Result<T, Failure> {
        if let Some(settings) = self.agent.mcp.get(server)
            && let Some(url) = &settings.url
        {
            return self.exchange_over_http(server, settings, url, speak).await;
        }
        self.exchange_with_program(server, speak).await
    }

    /// Starts a server, speaks to it, and ends it.
    async fn exchange_with_program<T>(
        &self,
        server: &str,
        speak: impl AsyncFnOnce(&Client) -> Result<T, rmcp::ServiceError>,
    ) -> Result<T, Failure> {
        let name = format!("mcp-{server}");
        let fifo = Fifo::new(self.setup.runner.data_dir()).map_err(|error| {
            Failure::machine(format!("the input of the MCP server {server} is not made: {error}"))
        })?;
        let spec = self.spec(server, &name, &fifo)?;
        let (mut observer, output) = output();
        let (ended, has_ended) = oneshot::channel::<()>();
        let stop = async {
            // A server that ignores the end of its input is ended.
            let grace = async {
                let _ = has_ended.await;
                tokio::time::sleep(GRACE).await;
            };
            tokio::select! {
                () = self.attempt.cancelled() => {}
                () = grace => {}
            }
        };
        let run = self.setup.runner.run_observed(&spec, self.attempt, stop, &mut observer);
        let spoken = async {
            let input = fifo.sender().map_err(|error| error.to_string())?;
            let client = ().serve((output, input)).await.map_err(|error| error.to_string())?;
            let spoken = speak(&client).await;
            let _ = client.cancel().await;
            drop((fifo, ended));
            spoken.map_err(|error| error.to_string())
        };
        let mut run = std::pin::pin!(run);
        let spoken = tokio::select! {
            biased;
            spoken = spoken => {
                let _ = run.await;
                spoken.map_err(|error| format!("gives no valid answer: {error}"))
            }
            ran = &mut run => Err(match ran {
                Ok(ran) => format!("ended early ({}): {}", ran.ending(), ran.output_tail.trim()),
                Err(failure) => return Err(failure),
            }),
        };
        for log in logs_of(self.setup.runner.data_dir(), self.attempt, &name) {
            let _ = std::fs::remove_file(log);
        }
        if self.attempt.is_cancelled() {
            return Err(Failure::cancelled());
        }
        spoken.map_err(|why| Failure::terminal(format!("the MCP server `{server}` {why}")))
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
            limits: Limits { total: Some(TIMEOUT), silence: None },
            remedy: "Correct `command` under [agent.mcp].",
        })
    }
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
    let (server, tool) = (server.to_owned(), tool.name.to_string());
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
