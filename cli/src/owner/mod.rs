//! Reaching the log: through the process that owns it, or, when none does, by opening it.

mod again;
mod batches;
mod begin_again;
mod carry;
mod desk;
mod engaged;
mod held;
mod order;
mod owning;
mod refused;
mod select;
mod serve;
mod socket;
mod standing;
mod steering;
mod stuck;
mod waiting;

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use longhaul_activities::{checks, git, process, project, session};
use longhaul_engine::{Engine, Handlers, Options, Parts, StoreError, SystemClock, Workflows};
use longhaul_storage::SledStore;
use longhaul_workflows::batch::BatchWorkflow;
use longhaul_workflows::contracts;
use longhaul_workflows::feature::FeatureWorkflow;
use longhaul_workflows::project::ProjectWorkflow;

use crate::exit::usage;
use crate::leftovers;

pub(crate) use again::{Again, From, Report, Row};
pub(crate) use batches::BatchStanding;
pub(crate) use carry::{Carried, Errand, Imported, PrunedRun};
pub(crate) use desk::{Answer, Ask, Desk, is_copy};
pub(crate) use order::Order;
pub(crate) use select::{Filter, without_covered};
pub(crate) use serve::Server;
pub(crate) use socket::Gone;
use socket::Remote;
pub(crate) use standing::Standing;
use waiting::Waiting;

/// Where the log of a data directory is reached.
pub(crate) enum Access {
    /// Another process owns it.
    Remote(Remote),
    /// Nobody ran it: we opened it ourselves.
    Local(Arc<Desk>),
}

impl Access {
    /// Reaches the log; `None` if there is none yet. If another process owns it and goes away before it answers, whoever
    /// comes next is asked.
    pub(crate) async fn reach(data_dir: &Path) -> Result<Option<Self>> {
        Ok(Self::reach_now(data_dir).await?.map(|access| match access {
            Self::Remote(remote) => Self::Remote(remote.or_next()),
            access @ Self::Local(_) => access,
        }))
    }

    /// Reaches the process that runs the log, and nobody after it; `None` if none does. One that is just starting is waited
    /// for.
    pub(crate) async fn reach_owner(data_dir: &Path) -> Result<Option<Self>> {
        Ok(Self::reach_now(data_dir).await?.filter(|access| matches!(access, Self::Remote(_))))
    }

    async fn reach_now(data_dir: &Path) -> Result<Option<Self>> {
        let mut waiting = Waiting::default();
        loop {
            if let Some(remote) = Remote::connect(data_dir).await {
                return Ok(Some(Self::Remote(remote)));
            }
            let dir = data_dir.display();
            if data_dir.exists() && !data_dir.is_dir() {
                return Err(usage(format!("{dir} is no directory: name the data directory with --data-dir")));
            }
            if !data_dir.join("lock").try_exists().with_context(|| format!("cannot look into {dir}"))? {
                return Ok(None);
            }
            match SledStore::open(data_dir) {
                Ok(store) => {
                    let git = git::GitHandlers::new(data_dir);
                    return Ok(Some(Self::Local(Desk::at_rest(Arc::new(store), git))));
                }
                // Its owner is just starting, or another command has it for a moment.
                Err(StoreError::Owned { owner, .. }) => waiting.a_little(data_dir, owner).await?,
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// The same, with a new log where there is none, for a command that fills it.
    pub(crate) async fn reach_or_create(data_dir: &Path) -> Result<Self> {
        if let Some(access) = Self::reach(data_dir).await? {
            return Ok(access);
        }
        match SledStore::open(data_dir) {
            Ok(store) => Ok(Self::Local(Desk::at_rest(Arc::new(store), git::GitHandlers::new(data_dir)))),
            Err(error) if is_owned(&error) => Self::reach(data_dir).await?.ok_or_else(|| error.into()),
            Err(error) => Err(error.into()),
        }
    }

    /// Reaches the process that runs the log, if one answers now.
    pub(crate) async fn at_owner(data_dir: &Path) -> Option<Self> {
        Remote::connect(data_dir).await.map(Self::Remote)
    }

    /// Asks something of the log.
    pub(crate) async fn ask(&self, ask: Ask) -> Result<Answer> {
        match self {
            Self::Local(desk) => Ok(desk.answer_here(ask).await),
            Self::Remote(remote) => match remote.ask(&ask).await {
                Err(gone) if remote.or_next && gone.allows(&ask) => Self::ask_next(&remote.data_dir, &ask).await,
                answer => Ok(answer?),
            },
        }
    }

    /// Asks whoever has the log when its owner is gone.
    async fn ask_next(data_dir: &Path, ask: &Ask) -> Result<Answer> {
        let mut waiting = Waiting::default();
        loop {
            let Some(access) = Self::reach_now(data_dir).await? else {
                anyhow::bail!("the log in {} is not there any more", data_dir.display());
            };
            match access {
                Self::Local(desk) => return Ok(desk.answer_here(ask.clone()).await),
                Self::Remote(owner) => match owner.ask(ask).await {
                    Err(gone) if gone.allows(ask) => {}
                    answer => return Ok(answer?),
                },
            }
            waiting.a_little(data_dir, "that is about to end".into()).await?;
        }
    }
}

/// Whether an error says that another process owns the log.
pub(crate) fn is_owned(error: &StoreError) -> bool {
    matches!(error, StoreError::Owned { .. })
}

/// The pool of the agents.
const AGENTS: &str = "agents";

/// How much may run at once.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) agents: usize,
    pub(crate) checks: usize,
}

/// Opens the log as its owner, ends what a dead owner left running, and starts an engine.
pub(crate) async fn open(data_dir: &Path, limits: Limits) -> Result<Arc<Desk>> {
    if let Some(call) = process::call_of(std::process::id().cast_signed(), data_dir) {
        return Err(usage(format!("the session {call} cannot run the log that runs it: name another with --data-dir")));
    }
    git::check_git().await.map_err(|failure| anyhow::anyhow!("{failure}"))?;
    let store = Arc::new(SledStore::open(data_dir)?);
    // The lock is ours now: whatever still carries our mark belongs to an owner that is dead.
    for leftover in process::sweep(data_dir) {
        tracing::info!(pid = leftover.pid, command = leftover.command, "ended a leftover of a dead owner");
    }
    leftovers::remove(data_dir);
    let git = git::GitHandlers::new(data_dir);
    let options = Options {
        pools: vec![(AGENTS.into(), limits.agents), ("checks".into(), limits.checks)],
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
    Ok(Desk::with_engine(store, engine, git))
}

/// All workflows.
pub(crate) fn workflows() -> Workflows {
    Workflows::new()
        .with(FeatureWorkflow::NAME, FeatureWorkflow)
        .with(ProjectWorkflow::NAME, ProjectWorkflow)
        .with(BatchWorkflow::NAME, BatchWorkflow)
}

/// All handlers.
fn handlers(data_dir: &Path, git: &git::GitHandlers) -> Result<Handlers> {
    let supervisor = process::Supervisor::of_this_binary().context("cannot find this program itself")?;
    let checks = checks::ChecksHandler::new(data_dir, supervisor.clone(), git.clone());
    Ok(git
        .register(Handlers::new())
        .with::<contracts::LoadBacklog>(project::ProjectReader::new(git.clone()))
        .with::<contracts::RunSetup>(checks.clone())
        .with::<contracts::RunChecks>(checks.clone())
        .with::<contracts::CheckBase>(checks)
        .with::<contracts::RunSession>(session::SessionHandler::new(data_dir, supervisor, git.clone())))
}
