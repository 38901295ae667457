//! Work trees, checkpoints and merges: the handlers of the git contracts, by way of the git command.
//!
//! Every handler comes to the same end from any state that a crash can leave. Read in this order: `open` (a work tree for a
//! feature), `seal` (a checkpoint), `merge` and `land` (the way to the target branch), `close`. Below them: `tip` (where work
//! goes on top of), `back` (a feature at an earlier commit), `snapshot` and `rescue` (nothing is lost), `protected` and `head` (what an agent may not do), `checkout`
//! and `saved` (the user's files), and [`check_git`] with its neighbours for a project's first use.

mod back;
mod checkout;
mod checkpoint;
mod close;
mod command;
mod files;
mod found;
mod head;
mod land;
mod left;
mod list;
mod locks;
mod merge;
mod message;
mod moved;
mod names;
mod notes;
mod open;
mod protected;
mod refresh;
mod refs;
mod remake;
mod repository;
mod rescue;
mod rollback;
mod saved;
mod seal;
mod snapshot;
mod tip;
mod trees;
mod worktree;

use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, PoisonError};

use async_trait::async_trait;
use longhaul_engine::{Attempt, Failure, Handler, Handlers, Probe};
use longhaul_workflows::contracts::{
    CloseInput, CloseWorktree, Follow, FollowInput, Land, LandInput, Landed, MergeCandidate, MergeInput, Merged,
    OpenInput, OpenWorktree, ProjectRef, RefreshInput, RefreshWorktree, Refreshed, RollBack, RollBackInput, Seal,
    SealInput, Sealed, WentBack, Worktree,
};
use tokio::sync::Mutex;

pub use back::TakeBack;
pub use checkpoint::{Keep, Kept};
pub(crate) use command::Git;
pub use found::{commit_files, has_commit, make_repository};
pub(crate) use left::clear_left;
pub use locks::{LockFile, lock_files};
pub use moved::carries_id;
use refs::Repository;
pub(crate) use remake::Wanted;
pub use repository::{
    Checkout, branch_of, check_git, commits_not_in, exclude_own_files, has_branch, known_project_id, project_id,
    share_repository,
};
pub use rollback::WayBack;

/// The handlers of all git contracts. Clones share the locks that keep one repository's commands apart.
#[derive(Debug, Clone)]
pub struct GitHandlers {
    data_dir: PathBuf,
    locks: Arc<std::sync::Mutex<HashMap<PathBuf, Arc<Mutex<()>>>>>,
    /// Where projects are, by their ids.
    places: Arc<std::sync::Mutex<HashMap<String, PathBuf>>>,
}

impl GitHandlers {
    /// Handlers that keep their work trees under `data_dir`.
    pub fn new(data_dir: impl Into<PathBuf>) -> Self {
        Self { data_dir: data_dir.into(), locks: Arc::default(), places: Arc::default() }
    }

    /// Adds all of them to an engine's handlers.
    #[must_use]
    pub fn register(&self, handlers: Handlers) -> Handlers {
        handlers
            .with::<OpenWorktree>(self.clone())
            .with::<RefreshWorktree>(self.clone())
            .with::<Seal>(self.clone())
            .with::<MergeCandidate>(self.clone())
            .with::<Land>(self.clone())
            .with::<Follow>(self.clone())
            .with::<CloseWorktree>(self.clone())
            .with::<RollBack>(self.clone())
    }

    /// Brings the work tree of a feature back to its branch after somebody died in it; see [`OpenWorktree`].
    pub(crate) async fn reopen_worktree(&self, input: &OpenInput, attempt: &Attempt) -> Result<Worktree, Failure> {
        self.repository(&input.project).await?.open_worktree(input, attempt).await
    }

    async fn repository(&self, project: &ProjectRef) -> Result<Repository, Failure> {
        let name = Path::new(&project.id);
        if project.id.is_empty() || !name.components().all(|part| matches!(part, Component::Normal(_))) {
            return Err(Failure::terminal(format!(
                "`{}` cannot be the id of a project: it is no plain name",
                project.id
            )));
        }
        std::fs::create_dir_all(&self.data_dir)
            .map_err(|error| files::failed("make the directory", &self.data_dir, &error))?;
        let data_dir = files::canonical(&self.data_dir)?;
        let root = self.root_of(project);
        let common = repository::common_dir(&root).await?;
        let lock = {
            let mut locks = self.locks.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(locks.entry(common.clone()).or_default())
        };
        let (worktrees, saved) = (data_dir.join("worktrees").join(name), data_dir.join("saved").join(name));
        Ok(Repository { root, common, worktrees, saved, lock })
    }
}

/// Runs what changes the user's checkout to its end, even if nobody waits for it any more: half a change is seen by the user.
async fn to_its_end<T: Send + 'static>(
    work: impl Future<Output = Result<T, Failure>> + Send + 'static,
) -> Result<T, Failure> {
    let outcome = tokio::spawn(work).await;
    outcome.unwrap_or_else(|error| Err(Failure::retryable(format!("moving the branch did not end: {error}"))))
}

#[async_trait]
impl Handler<OpenWorktree> for GitHandlers {
    async fn perform(&self, input: OpenInput, attempt: &Attempt) -> Result<Worktree, Failure> {
        self.reopen_worktree(&input, attempt).await
    }
}

#[async_trait]
impl Handler<RefreshWorktree> for GitHandlers {
    async fn perform(&self, input: RefreshInput, attempt: &Attempt) -> Result<Refreshed, Failure> {
        self.repository(&input.project).await?.refresh_worktree(&input, attempt).await
    }
}

#[async_trait]
impl Handler<Seal> for GitHandlers {
    async fn perform(&self, input: SealInput, attempt: &Attempt) -> Result<Sealed, Failure> {
        self.repository(&input.project).await?.seal(&input, attempt).await
    }
}

#[async_trait]
impl Handler<MergeCandidate> for GitHandlers {
    async fn perform(&self, input: MergeInput, attempt: &Attempt) -> Result<Merged, Failure> {
        self.repository(&input.project).await?.merge_candidate(&input, attempt).await
    }
}

#[async_trait]
impl Handler<Land> for GitHandlers {
    async fn perform(&self, input: LandInput, _attempt: &Attempt) -> Result<Landed, Failure> {
        let repository = self.repository(&input.project).await?;
        to_its_end(async move { repository.land(&input).await }).await
    }

    async fn probe(&self, input: LandInput, _attempt: &Attempt) -> Probe<Landed> {
        let asked = match self.repository(&input.project).await {
            Ok(repository) => to_its_end(async move { repository.probe_landing(&input).await }).await,
            Err(failure) => Err(failure),
        };
        asked.unwrap_or_else(|failure| Probe::Unknown(failure.message))
    }
}

#[async_trait]
impl Handler<Follow> for GitHandlers {
    async fn perform(&self, input: FollowInput, _attempt: &Attempt) -> Result<Landed, Failure> {
        let repository = self.repository(&input.project).await?;
        to_its_end(async move { repository.follow(&input).await }).await
    }
}

#[async_trait]
impl Handler<CloseWorktree> for GitHandlers {
    async fn perform(&self, input: CloseInput, attempt: &Attempt) -> Result<(), Failure> {
        self.repository(&input.project).await?.close_worktree(&input, attempt).await
    }
}

#[async_trait]
impl Handler<RollBack> for GitHandlers {
    async fn perform(&self, input: RollBackInput, _attempt: &Attempt) -> Result<WentBack, Failure> {
        let repository = self.repository(&input.project).await?;
        to_its_end(async move { repository.roll_back(&input).await }).await
    }
}
