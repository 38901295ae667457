//! Take back and try again: runs that are forked, restarted or resumed, on a log at rest and on one
//! that is run.

mod checkpoints;
mod edit;
mod fork;
mod resume;
mod rollback;

use longhaul_engine::{RequestedBy, RunId, StoreError};
use longhaul_workflows::contracts::ProjectRef;
use longhaul_workflows::feature::Checkpoint;
use serde::{Deserialize, Serialize};

use crate::request::{RequestError, request};
use crate::service::Service;

/// Makes a new run of a feature that goes on from a step of another one.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Fork {
    /// The run.
    pub run: RunId,
    /// The step.
    pub from: From,
    /// What its agent is told.
    pub note: Option<String>,
    /// Changed settings and parts of the feature: key and value.
    pub set: Vec<(String, String)>,
    /// The requester, and the reason.
    pub request: RequestedBy,
}

/// Moves the target branch of a project back to a commit, or to where a feature landed.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RollBack {
    /// The run of the project.
    pub project: RunId,
    /// A commit, a branch, a tag, or the id of a feature.
    pub to: String,
    /// The requester, and the reason.
    pub request: RequestedBy,
}

/// Keeps the work tree of a run as it is now.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TakeCheckpoint {
    /// The run.
    pub run: RunId,
    /// Its note.
    pub note: String,
    /// The requester, and the reason.
    pub request: RequestedBy,
}

/// The checkpoints of a run, or of the features of a project.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ListCheckpoints {
    /// A run, or a project with all below it.
    pub target: RunId,
}

/// A step of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum From {
    /// Before the first.
    Start,
    /// Behind the commit that sealed a session.
    Session(u32),
    /// Where a person had the work tree kept.
    Checkpoint(u32),
    /// Behind an event.
    Position(u64),
}

impl std::str::FromStr for From {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str| text.parse().ok();
        let step = match text.split_once(':') {
            None if text == "start" => Some(Self::Start),
            None => number(text).map(Self::Position),
            Some(("session", n)) => n.parse().ok().map(Self::Session),
            Some(("checkpoint", n)) => n.parse().ok().map(Self::Checkpoint),
            Some(_) => None,
        };
        step.ok_or_else(|| {
            "a step is `start`, `session:N`, `checkpoint:N` or a position in the history, such as 12".into()
        })
    }
}

/// A new run that goes on from a step of another one.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Forked {
    /// The run.
    pub run: RunId,
    /// The run that it goes on from.
    pub origin: RunId,
    /// The position that was asked for.
    pub asked: u64,
    /// The position behind which it goes on.
    pub position: u64,
    /// The commit that its work tree begins on; `None`: it begins anew.
    pub commit: Option<String>,
}

/// A project that was rolled back.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RolledBack {
    /// The commit that the target branch is at.
    pub to: String,
    /// The ref that keeps the commits which landed since.
    pub kept: String,
    /// The features that are worked on again.
    pub undone: Vec<String>,
}

/// A checkpoint that was taken.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Taken {
    /// The run.
    pub run: RunId,
    /// Its number: `fork --from checkpoint:N`.
    pub number: u32,
    /// The commit that keeps the work tree.
    pub commit: String,
}

/// A checkpoint of a run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Row {
    /// The run.
    pub run: RunId,
    /// How `fork --from` calls it.
    pub name: String,
    /// Whether a fork can go on from it.
    pub fork: bool,
    /// Whether a rollback can go back to it.
    pub rollback: bool,
    /// Its position, commit and step.
    #[serde(flatten)]
    pub checkpoint: Checkpoint,
}

request!(Fork, "fork" -> Forked, command: Some("fork"), |self, service| {
    service.prepare(&self.run).await?;
    service.fork(self).await
});

request!(RollBack, "roll_back" -> RolledBack, command: Some("rollback"), |self, service| {
    service.prepare(&self.project).await?;
    service.rollback(self).await
});

request!(TakeCheckpoint, "take_checkpoint" -> Taken, command: Some("checkpoint"), |self, service| {
    service.prepare(&self.run).await?;
    service.checkpoint(self).await
});

request!(ListCheckpoints, "checkpoints" -> Vec<Row>, |self, service| {
    service.locate(&self.target).await?;
    service.checkpoints(&self.target).await
});

impl Service {
    /// What a change of a run needs: its repository, which has to belong to this data directory.
    async fn prepare(&self, run: &RunId) -> Result<(), RequestError> {
        self.locate(run).await?;
        self.not_owned(run).await?.map_or(Ok(()), |reason| Err(RequestError::Refused { reason }))
    }

    /// Tells git where the project of a run is: histories of one that was moved name the place
    /// where it was.
    async fn locate(&self, run: &RunId) -> Result<(), StoreError> {
        if self.engine.is_some() {
            return Ok(());
        }
        let Ok(project) = RunId::new(run.root()) else { return Ok(()) };
        if let Some(root) = crate::status::known_root(&*self.store, &project).await? {
            self.git.is_at(&ProjectRef { id: project.to_string(), root });
        }
        Ok(())
    }

    /// Ends what a fork had begun that was killed: its feature is put back to where it was, if
    /// there is no run.
    pub(crate) async fn settle_forks(&self, project: &ProjectRef) -> Result<(), StoreError> {
        let _taking_back = self.taking_back.lock().await;
        let begun = self.git.taken_back_for(project).await.unwrap_or_else(|failure| {
            tracing::warn!("{failure}");
            Vec::new()
        });
        for run in begun {
            let is_there = self.store.summary(&run).await?.is_some();
            if let Err(failure) = self.git.settle_back(project, &run, is_there).await {
                tracing::warn!("{failure}");
            }
        }
        Ok(())
    }
}
