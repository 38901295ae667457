//! Fork, rollback, restart, checkpoint: on a log at rest and on one that a process runs.

mod checkpoints;
mod edit;
mod fork;
mod resume_closed;
mod rollback;

use longhaul_engine::{RequestedBy, RunId, StoreError};
use longhaul_workflows::contracts::ProjectRef;
use longhaul_workflows::feature::Checkpoint;
use serde::{Deserialize, Serialize};

use crate::perform::request;
use crate::request::RequestError;
use crate::service::Service;

/// Creates a new run of a feature from a step of an earlier run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Fork {
    /// The run.
    pub run: RunId,
    /// The step.
    pub from: ForkPoint,
    /// A note for its agent.
    pub note: Option<String>,
    /// Changed settings and parts of the feature: keys and values.
    pub set: Vec<(String, String)>,
    /// The requester, and the reason.
    pub request: RequestedBy,
    /// Whether to only report the result.
    pub dry_run: bool,
}

/// Moves the target branch of a project back to a commit, or to where a feature landed.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RollBack {
    /// The run of the project.
    pub project: RunId,
    /// A commit, a branch or a tag; or the id of a feature: the commit at which it landed.
    pub to: String,
    /// The requester, and the reason.
    pub request: RequestedBy,
    /// Whether to only report the result.
    pub dry_run: bool,
}

/// Records the current work tree of a run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TakeCheckpoint {
    /// The run.
    pub run: RunId,
    /// A note for the list of checkpoints.
    pub note: String,
    /// The requester, and the reason.
    pub request: RequestedBy,
}

/// The checkpoints of a run, or of the features of a project.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ListCheckpoints {
    /// A run, or a project with all its runs.
    pub target: RunId,
}

/// A step of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ForkPoint {
    /// Before the first step.
    Start,
    /// After the commit that sealed a session.
    Session(u32),
    /// A checkpoint that a person took.
    Checkpoint(u32),
    /// After an event.
    Position(u64),
    /// After the last step with a commit.
    Last,
    /// Before the session that failed, or whose work failed its checks.
    BeforeFailure,
}

impl std::str::FromStr for ForkPoint {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str| text.parse().ok();
        let step = match text.split_once(':') {
            None if text == "start" => Some(Self::Start),
            None if text == "last" => Some(Self::Last),
            None if text == "before-failure" => Some(Self::BeforeFailure),
            None => number(text).map(Self::Position),
            Some(("session", n)) => n.parse().ok().map(Self::Session),
            Some(("checkpoint", n)) => n.parse().ok().map(Self::Checkpoint),
            Some(_) => None,
        };
        step.ok_or_else(|| {
            "a step is `start`, `last`, `before-failure`, `session:N`, `checkpoint:N` or a \
             position in the history, such as 12"
                .into()
        })
    }
}

/// A new run that continues from a step of an earlier one.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Forked {
    /// The run.
    pub run: RunId,
    /// The origin run.
    pub origin: RunId,
    /// The requested position.
    pub requested: u64,
    /// The last position that it took over.
    pub position: u64,
    /// The first commit of its work tree; `None`: it starts without earlier work.
    pub commit: Option<String>,
    /// The features that passed on the work of its feature: their checks run again.
    pub invalidates: Vec<String>,
}

/// The result of a rollback.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RolledBack {
    /// The commit of the target branch.
    pub to: String,
    /// The ref that keeps the removed commits.
    pub kept: String,
    /// The features that are pending again.
    pub undone: Vec<String>,
}

/// A new checkpoint.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TakenCheckpoint {
    /// The run.
    pub run: RunId,
    /// Its number: `fork --from checkpoint:N`.
    pub number: u32,
    /// The commit that contains the work tree.
    pub commit: String,
    /// Whether the run has not ended: a fork has to wait for that.
    pub is_open: bool,
}

/// A checkpoint of a run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RewindPoint {
    /// The run.
    pub run: RunId,
    /// Its name for `fork --from`.
    pub name: String,
    /// Whether a fork can start from it.
    pub fork: bool,
    /// Whether a rollback can return to it.
    pub rollback: bool,
    /// Its position, commit and step.
    #[serde(flatten)]
    pub checkpoint: Checkpoint,
}

request!(Fork, "fork" -> Forked, command: (!self.dry_run).then_some("fork"), |self, service| {
    service.prepare(&self.run).await?;
    service.fork(self).await
});

request!(RollBack, "roll_back" -> RolledBack,
    command: (!self.dry_run).then_some("rollback"), |self, service| {
    service.prepare(&self.project).await?;
    service.rollback(self).await
});

request!(TakeCheckpoint, "take_checkpoint" -> TakenCheckpoint,
    command: Some("checkpoint"), |self, service| {
    service.prepare(&self.run).await?;
    service.checkpoint(self).await
});

request!(ListCheckpoints, "checkpoints" -> Vec<RewindPoint>, |self, service| {
    service.locate(&self.target).await?;
    service.checkpoints(&self.target).await
});

impl Service {
    /// Requirements of a change to a run: its repository, owned by this data directory.
    async fn prepare(&self, run: &RunId) -> Result<(), RequestError> {
        self.locate(run).await?;
        self.not_owned(run).await?.map_or(Ok(()), |reason| Err(RequestError::Refused { reason }))
    }

    /// Passes the current root of the project to git: the history of a moved project names the old
    /// one.
    async fn locate(&self, run: &RunId) -> Result<(), StoreError> {
        if self.engine.is_some() {
            return Ok(());
        }
        let Ok(project) = RunId::new(run.root()) else { return Ok(()) };
        if let Some(root) = crate::head::known_root(&*self.store, &project).await? {
            self.git.is_at(&ProjectRef { id: project.to_string(), root });
        }
        Ok(())
    }

    /// Undoes an interrupted fork: resets its feature if the new run does not exist.
    pub(crate) async fn settle_forks(&self, project: &ProjectRef) -> Result<(), StoreError> {
        let _rewinding = self.rewinding.lock().await;
        let begun = self.git.pending_rewinds(project).await.unwrap_or_else(|failure| {
            tracing::warn!("{failure}");
            Vec::new()
        });
        for run in begun {
            let is_there = self.store.summary(&run).await?.is_some();
            if let Err(failure) = self.git.settle_rewind(project, &run, is_there).await {
                tracing::warn!("{failure}");
            }
        }
        Ok(())
    }
}
