//! Take back and try again: runs that are forked, restarted or resumed, on a log at rest and on one that is run.

mod checkpoints;
mod edit;
mod fork;
mod resume;
mod rollback;

use longhaul_engine::{Request, RunId, StoreError};
use longhaul_workflows::contracts::ProjectRef;
use longhaul_workflows::feature::Checkpoint;
use serde::{Deserialize, Serialize};

use crate::service::{Answer, Service};

/// What is to be done again.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "verb", rename_all = "snake_case")]
pub enum Again {
    /// A new run of the feature, that goes on from a step of this one.
    Fork { run: RunId, from: From, note: Option<String>, set: Vec<(String, String)>, request: Request },
    /// The target branch of a project goes back to a commit, or to where a feature landed.
    Rollback { project: RunId, to: String, request: Request },
    /// Keep the work tree of a run as it is now.
    Checkpoint { run: RunId, note: String, request: Request },
    /// What a run, or the features of a project, can be taken back to.
    Checkpoints { target: RunId },
}

impl Again {
    /// The run or the project that it is about.
    fn about(&self) -> &str {
        match self {
            Self::Fork { run, .. } | Self::Checkpoint { run, .. } => run.as_str(),
            Self::Rollback { project, .. } => project.as_str(),
            Self::Checkpoints { target } => target.as_str(),
        }
    }
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

/// What came of it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "report", rename_all = "snake_case")]
pub enum Report {
    /// There is a new run.
    Forked {
        run: RunId,
        origin: RunId,
        /// The position that was asked for.
        asked: u64,
        /// The position behind which it goes on.
        position: u64,
        commit: Option<String>,
    },
    /// Done, or nothing was to do.
    Said { text: String },
    /// A person has to do something else first, or the run has to.
    Held { reason: String },
    /// The code does not decide as the history says.
    Diverged { reason: String },
    /// A project is where it was.
    RolledBack { to: String, kept: String, undone: Vec<String> },
    /// The work tree is kept.
    Kept { run: RunId, number: u32, commit: String },
    /// What can be taken back to.
    Checkpoints { rows: Vec<Row> },
}

/// A checkpoint of a run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Row {
    pub run: RunId,
    /// How `fork --from` calls it.
    pub name: String,
    /// Whether a fork can go on from it.
    pub fork: bool,
    /// Whether a rollback can go back to it.
    pub rollback: bool,
    #[serde(flatten)]
    pub checkpoint: Checkpoint,
}

impl Service {
    /// Answers.
    pub(crate) async fn again(&self, again: Again) -> Result<Answer, StoreError> {
        if self.engine.is_none() {
            self.find_project(again.about()).await?;
        }
        let only_looks = matches!(again, Again::Checkpoints { .. });
        if !only_looks && let Some(reason) = self.not_owned(again.about()).await? {
            return Ok(refused(reason));
        }
        match again {
            Again::Fork { run, from, note, set, request } => {
                let fork = fork::Fork { run, from, note, set, request };
                self.fork(fork).await
            }
            Again::Rollback { project, to, request } => self.rollback(project, to, request).await,
            Again::Checkpoint { run, note, request } => self.checkpoint(run, note, request).await,
            Again::Checkpoints { target } => self.checkpoints(&target).await,
        }
    }
}

impl Service {
    /// Histories of a project that was moved name the place where it was.
    async fn find_project(&self, run: &str) -> Result<(), StoreError> {
        let id = run.split('/').next().unwrap_or_default();
        let Ok(project) = RunId::new(id) else { return Ok(()) };
        if let Some(root) = crate::status::known_root(&*self.store, &project).await? {
            self.git.is_at(&ProjectRef { id: id.to_owned(), root });
        }
        Ok(())
    }

    /// Ends what a fork had begun that was killed: its feature is put back to where it was, if there is no run.
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

/// A no that is the asker's to mend.
fn refused(reason: impl std::fmt::Display) -> Answer {
    Answer::Refused { reason: reason.to_string() }
}

fn report(report: Report) -> Answer {
    Answer::Again { report }
}
