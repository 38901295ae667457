//! A project on this machine, and the checks before it runs.

use std::path::{Path, PathBuf};

use longhaul_activities::git::{self, GitHandlers};
use longhaul_activities::{confine, mcp, project, session};
use longhaul_engine::{Failure, FailureKind, RunId};
use longhaul_workflows::backlog::Backlog;
use longhaul_workflows::contracts::ProjectRef;
use longhaul_workflows::settings::{AgentSettings, Driver};

use crate::advice;
use crate::error::Result;
use crate::lock_state::LockState;
use crate::request::RequestError;

/// A project: a git repository with a backlog.
#[derive(Debug, Clone)]
pub struct Project {
    /// Its id in the log.
    pub id: RunId,
    /// The top directory of the checkout.
    pub root: PathBuf,
}

impl Project {
    /// The project that contains a directory.
    pub async fn at(dir: &Path) -> Result<Self> {
        let root = git::Checkout::containing(dir).await;
        let root = root.map_err(|failure| refusal(advice::with_remedy(failure, dir)))?.top;
        let id = git::project_id(&root).await.map_err(failed)?;
        Ok(Self { id: RunId::new(id).map_err(RequestError::refused)?, root })
    }

    /// Like `at`, but `None` for a project without an id; changes nothing.
    pub async fn known_at(dir: &Path) -> Option<Self> {
        let root = git::Checkout::containing(dir).await.ok()?.top;
        let id = git::known_project_id(&root).await.ok()??;
        Some(Self { id: RunId::new(id).ok()?, root })
    }

    /// The reference that workflows use.
    pub fn reference(&self) -> ProjectRef {
        ProjectRef { id: self.id.to_string(), root: self.root.to_string_lossy().into_owned() }
    }
}

/// An error before the run started: of this machine or its repository, or of the request.
fn refusal(failure: Failure) -> RequestError {
    if is_operational(&failure) { failed(failure) } else { RequestError::refused(failure.message) }
}

/// Whether a failure before the start is of this machine or its repository, and not of the request.
pub fn is_operational(failure: &Failure) -> bool {
    failure.kind == FailureKind::Machine || failure.code.as_deref() == Some(git::DAMAGED)
}

/// A failure of git that no request causes.
fn failed(failure: Failure) -> RequestError {
    RequestError::Failed { reason: failure.message }
}

/// Checks that the project at `root` can run: settings and list are readable, agent and target
/// branch exist, the dependencies have an order. Returns notes on the list.
pub async fn check(root: &Path) -> Result<Vec<String>, RequestError> {
    let loaded = project::load(root).await.map_err(refusal)?;
    confine::in_force(loaded.settings.agent.sandbox)
        .map_err(|failure| RequestError::Failed { reason: failure.to_string() })?;
    let agent = &loaded.settings.agent;
    let problem = session::settings_problem(agent).or_else(|| mcp::problem(root, agent));
    if let Some(problem) = problem {
        let settings = root.join("longhaul.toml");
        return Err(RequestError::refused(format!("{}: {problem}", settings.display())));
    }
    if agent.driver != Driver::Api {
        check_agent(root, agent).await?;
    }
    if loaded.settings.project.target.is_some()
        && !git::has_branch(root, &loaded.target).await.map_err(refusal)?
    {
        let advice = "correct `target` under [project], or make the branch";
        let settings = root.join("longhaul.toml");
        let settings = settings.display();
        return Err(RequestError::refused(format!(
            "{settings}: there is no branch `{}`; {advice}",
            loaded.target
        )));
    }
    if let Some(obstacle) = git::names_obstacle(root).await.map_err(refusal)? {
        return Err(RequestError::refused(obstacle));
    }
    let list = root.join(&loaded.list_file);
    let list = list.display();
    if loaded.features.is_empty() {
        let root = root.to_string_lossy();
        let add = ["feature", "add", "ID", "NAME", "--check", "COMMAND", "--dir", &*root];
        let add = advice::command(add);
        return Err(RequestError::refused(format!("{list} has no features yet: {add} adds one")));
    }
    let checkout = git::preflight(root, &loaded).await.map_err(refusal)?;
    let checkout = checkout.iter().map(ToString::to_string);
    let notes = loaded.notes.iter().map(|note| format!("{list}: {note}"));
    let notes = notes.chain(checkout).collect();
    Backlog::new(loaded.features)
        .map_err(|error| RequestError::refused(format!("{list}: {error}")))?;
    // Before any session is paid for.
    git::fetch_missing(root, &loaded.target)
        .await
        .map_err(|failure| refusal(advice::with_remedy(failure, root)))?;
    git::exclude_own_files(root).await.map_err(failed)?;
    Ok(notes)
}

/// Checks that the agent can be started, and that a known one is logged in as far as that can be
/// told without a call.
async fn check_agent(root: &Path, agent: &AgentSettings) -> Result<(), RequestError> {
    let settings = root.join("longhaul.toml");
    let settings = settings.display();
    let found = session::preflight(root, agent).await;
    let program = found.program.ok_or_else(|| {
        RequestError::refused(format!("{settings}: no agent; set `command` under [agent]"))
    })?;
    if let Some(problem) = found.problem {
        let key = agent.program_key();
        let advice = format!("install it, or correct `{key}` under [agent]");
        return Err(RequestError::refused(format!(
            "{settings}: the agent `{program}` {problem}; {advice}"
        )));
    }
    match found.login {
        Some(login) => Err(RequestError::refused(format!("{settings}: {login}"))),
        None => Ok(()),
    }
}

/// Completes the moves of checkouts that a killed owner left. Does nothing while the log is in use.
pub async fn restore_checkouts(data_dir: &Path, dirs: &[PathBuf]) {
    // Held until the end, so that no owner starts meanwhile.
    let state = LockState::of(data_dir).await;
    if !matches!(state, Ok(LockState::AtRest { .. })) {
        return;
    }
    let git = GitHandlers::new(data_dir);
    for dir in dirs {
        if let Some(project) = Project::known_at(dir).await
            && let Err(failure) = git.end_moves(&project.reference()).await
        {
            tracing::warn!("{failure}");
        }
    }
}
