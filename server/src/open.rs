//! Opening a log as its owner: the composition of store, engine and handlers.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use longhaul_activities::providers::Providers;
use longhaul_activities::{checks, git, mcp, model, process, project, session, tools};
use longhaul_engine::{Engine, Handlers, Options, Parts, Prefetch, SystemClock, Workflows};
use longhaul_storage::SledStore;
use longhaul_workflows::batch::BatchWorkflow;
use longhaul_workflows::contracts;
use longhaul_workflows::feature::FeatureWorkflow;
use longhaul_workflows::project::ProjectWorkflow;
use longhaul_workflows::session::SessionWorkflow;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::leftovers;
use crate::perform::request;
use crate::pools::{AGENTS, CHECKS, TREES};
use crate::request::RequestError;
use crate::service::Service;

/// Concurrency limits of the process.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Concurrent agent sessions.
    pub agents: usize,
    /// Concurrent set-up scripts and checks.
    pub checks: usize,
}

/// The most work trees that are opened although no agent is free: enough for the next sessions to
/// begin at once.
const TREES_AHEAD: usize = 2;

/// How long an unused work tree counts towards [`TREES_AHEAD`]: its feature may wait for something
/// other than an agent.
const OPENED_TREE_EXPIRY: Duration = Duration::from_secs(10);

/// Changes the concurrency limits of the process that runs the log.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct SetLimits {
    /// Concurrent agent sessions; `None`: as before.
    pub agents: Option<usize>,
    /// Concurrent set-up scripts and checks; `None`: as before.
    pub checks: Option<usize>,
}

request!(SetLimits, "set_limits" -> (), command: Some("run"), |self, service| {
    let engine = service.running()?;
    for (pool, size) in [(AGENTS, self.agents), (CHECKS, self.checks)] {
        if let Some(size) = size {
            engine.resize(pool, size.max(1));
        }
    }
    let pools = provider_pools(service.log.directory()).map_err(RequestError::refused)?;
    for (pool, size) in pools {
        engine.resize(&pool, size);
    }
    Ok(())
});

/// The pools of concurrent requests to providers, with their sizes.
fn provider_pools(data_dir: &Path) -> Result<Vec<(String, usize)>> {
    let providers = Providers::load(data_dir).map_err(Error::usage)?;
    let pool = |(name, size): (&str, u32)| (contracts::CallModel::pool(name), size as usize);
    Ok(providers.concurrent().map(pool).collect())
}

/// Opens the log as its owner, ends processes of a dead owner, and starts an engine.
pub async fn open(data_dir: &Path, limits: Limits) -> Result<Arc<Service>> {
    if let Some(call) = process::call_of(std::process::id().cast_signed(), data_dir) {
        return Err(Error::usage(format!(
            "the session {call} cannot run the log that runs it: name another with --data-dir"
        )));
    }
    git::check_git().await.map_err(Error::operational)?;
    let store = Arc::new(SledStore::open(data_dir)?);
    // The lock is ours, so processes with our mark belong to a dead owner.
    for leftover in process::sweep(data_dir) {
        tracing::info!(
            pid = leftover.pid,
            command = leftover.command,
            "ended a leftover of a dead owner"
        );
    }
    git::belong_to(data_dir);
    leftovers::remove(data_dir);
    let git = git::GitHandlers::new(data_dir);
    let options = Options {
        pools: [(AGENTS.into(), limits.agents), (CHECKS.into(), limits.checks)]
            .into_iter()
            .chain(provider_pools(data_dir)?)
            .collect(),
        prefetch: vec![Prefetch {
            pool: TREES.into(),
            feeds: AGENTS.into(),
            ahead: TREES_AHEAD,
            expiry: OPENED_TREE_EXPIRY,
            then: CHECKS.into(),
        }],
        adopted: Vec::new(),
        ..Options::default()
    };
    let parts = Parts {
        store: store.clone(),
        workflows: workflows(),
        handlers: handlers(data_dir, &git)?,
        clock: Arc::new(SystemClock),
        options,
    };
    let engine = Engine::open(parts).await?;
    Ok(Service::with_engine(store, engine, git))
}

/// Registers all workflows.
pub fn workflows() -> Workflows {
    Workflows::new()
        .with(FeatureWorkflow::NAME, FeatureWorkflow)
        .with(SessionWorkflow::NAME, SessionWorkflow)
        .with(ProjectWorkflow::NAME, ProjectWorkflow)
        .with(BatchWorkflow::NAME, BatchWorkflow)
}

/// Registers all handlers.
fn handlers(data_dir: &Path, git: &git::GitHandlers) -> Result<Handlers> {
    let supervisor = process::Supervisor::of_this_binary()
        .map_err(Error::io("cannot find this program itself"))?;
    let checks = checks::ChecksHandler::new(data_dir, supervisor.clone(), git.clone());
    let limiter = model::Limiter::new(data_dir);
    let sessions =
        session::SessionHandler::new(data_dir, supervisor.clone(), git.clone(), limiter.clone());
    let servers = mcp::McpServers::default();
    let hosted =
        session::HostedHandler::new(data_dir, supervisor.clone(), git.clone(), servers.clone());
    Ok(git
        .register(Handlers::new())
        .with::<contracts::LoadBacklog>(project::ProjectReader::new(git.clone()))
        .with::<contracts::RunSetup>(checks.clone())
        .with::<contracts::RunChecks>(checks.clone())
        .with::<contracts::Precheck>(checks)
        .with::<contracts::UseTool>(tools::ToolHandler::new(
            data_dir,
            supervisor.clone(),
            git.clone(),
            servers,
        ))
        .with::<contracts::RunHook>(tools::HookHandler::new(data_dir, supervisor, git.clone()))
        .with::<contracts::CallModel>(model::ModelHandler::new(data_dir, git.clone(), limiter))
        .with::<contracts::RunSession>(sessions.clone())
        .with::<contracts::ReadUse>(session::UseHandler::new(sessions))
        .with::<contracts::BeginSession>(hosted.clone())
        .with::<contracts::EndSession>(hosted))
}
