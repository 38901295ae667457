//! The frame of a session of the built-in agent: its files and prompts before the first model call,
//! and durable work after the last.

use std::path::Path;

use async_trait::async_trait;
use longhaul_engine::{Attempt, Failure, Handler};
use longhaul_workflows::contracts::{
    BeginInput, BeginSession, EndInput, EndSession, Handoff, SessionBegin, SessionEnd,
    SessionInput, StepTree, ToolSpec,
};
use longhaul_workflows::feature::feature_run;
use longhaul_workflows::{prompt, session};

use crate::checks::SetUp;
use crate::confine::describe;
use crate::git::{GitHandlers, TreeRequest, WorkTree};
use crate::longhaul_toml::agent_env;
use crate::mcp::{Host, McpServers};
use crate::model::client::Clients;
use crate::model::window;
use crate::process::{Environment, Runner, Supervisor, write_durably};

use super::files::SessionFiles;
use super::{landed, progress_file, sandbox_of};

/// Begins and ends sessions of the built-in agent.
#[derive(Debug, Clone)]
pub struct HostedHandler {
    setup: SetUp,
    servers: McpServers,
    clients: Clients,
}

impl HostedHandler {
    /// A handler that keeps its files in a data directory, which must exist.
    pub fn new(
        data_dir: impl AsRef<Path>,
        supervisor: Supervisor,
        git: GitHandlers,
        servers: McpServers,
    ) -> Self {
        let setup = SetUp { runner: Runner::new(data_dir, supervisor), git };
        Self { setup, servers, clients: Clients::default() }
    }

    fn files(&self, input: &SessionInput, attempt: &Attempt) -> SessionFiles {
        SessionFiles::new(&self.setup, attempt, input)
    }

    async fn tree(&self, input: &SessionInput, attempt: &Attempt) -> Result<WorkTree, Failure> {
        let wanted = TreeRequest {
            project: &input.project,
            feature: &input.feature.id,
            tree: StepTree::Feature,
            commit: None,
            attempt,
        };
        self.setup.git.work_tree(&wanted).await
    }

    /// The tools of the MCP servers of the settings.
    async fn mcp_tools(
        &self,
        input: &SessionInput,
        tree: &Path,
        attempt: &Attempt,
    ) -> Result<Vec<ToolSpec>, Failure> {
        let agent = &input.agent;
        if agent.mcp.is_empty() {
            return Ok(Vec::new());
        }
        let root = self.setup.git.root_of(&input.project);
        let env = Environment::chosen(&agent.pass_env).with_all(&agent_env(&root, &agent.env)?);
        let setup = &self.setup;
        let root = &*root;
        let held_out = input.held_out.clone();
        let clients = &self.clients;
        Host { setup, root, tree, agent, held_out, env, attempt, clients }.tools().await
    }

    /// The level of the sandbox in which the tools of the session run.
    fn sandbox(&self, input: &SessionInput, tree: &Path) -> Result<String, Failure> {
        let env = Environment::chosen(&input.agent.pass_env);
        Ok(describe(sandbox_of(&self.setup, input, tree, None, &env)?.as_ref()))
    }
}

#[async_trait]
impl Handler<BeginSession> for HostedHandler {
    async fn perform(&self, input: BeginInput, attempt: &Attempt) -> Result<SessionBegin, Failure> {
        let session = &input.session;
        let files = self.files(session, attempt);
        let run = feature_run(&attempt.run);
        let counted = files.counted_landings();
        if let Some(landed) = landed(&self.setup.git, session, &run, counted).await? {
            return Ok(SessionBegin {
                landed: Some(landed),
                sandbox: String::new(),
                texts: prompt::texts(&input),
                tools: Vec::new(),
                window: None,
            });
        }
        let tree = self.tree(session, attempt).await?;
        if input.task.is_none() {
            // Of a session that was terminated.
            self.servers.end_in(tree.path()).await;
        }
        tree.watch_target(&session.target, attempt).await?;
        let sandbox = self.sandbox(session, tree.path())?;
        let texts = prompt::texts(&input);
        files.prepare(session, &texts.prompt).map_err(|error| files.unwritable(&error))?;
        progress_file::copy_in(&tree, &self.setup.git.root_of(&session.project)).await?;
        if let Some(handoff) = &input.handoff {
            write_package(&files, handoff).map_err(|error| files.unwritable(&error))?;
        }
        tracing::info!(run = %attempt.run, session = session.number, sandbox, "a session begins");
        let mut tools = tools();
        tools.extend(self.mcp_tools(session, tree.path(), attempt).await?);
        let mut window = None;
        if session.agent.context.window.is_none() {
            let root = self.setup.git.root_of(&session.project);
            window = window::stated(&self.clients, &session.agent, &root).await;
        }
        Ok(SessionBegin { landed: None, sandbox, texts, tools, window })
    }
}

#[async_trait]
impl Handler<EndSession> for HostedHandler {
    async fn perform(&self, input: EndInput, attempt: &Attempt) -> Result<SessionEnd, Failure> {
        self.servers.end_of(&attempt.run).await;
        let tree = self.tree(&input.session, attempt).await?;
        let files = self.files(&input.session, attempt);
        tree.settle().await?;
        if let Some(handoff) = &input.handoff {
            write_package(&files, handoff).map_err(|error| files.unwritable(&error))?;
        }
        Ok(SessionEnd { notes: files.notes().unwrap_or_default() })
    }
}

fn tools() -> Vec<ToolSpec> {
    session::tools::specs().into_iter().chain([session::summary_tool()]).collect()
}
/// Writes the package for programs, and as a document for people.
fn write_package(files: &SessionFiles, handoff: &Handoff) -> std::io::Result<()> {
    std::fs::create_dir_all(files.directory())?;
    let json = serde_json::to_vec_pretty(handoff)?;
    write_durably(&files.directory().join("handoff-package.json"), &json)?;
    write_durably(&files.directory().join("handoff.md"), handoff.document().as_bytes())
}
