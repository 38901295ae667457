//! The git activities: work trees, checkpoints and merges, run through the git command.
//!
//! Every handler reaches the same end from any state that a crash or a power cut can leave, and
//! returns when its effects are on stable storage. Reading order: `open` (a work tree for a
//! feature), `seal` (a checkpoint), `merge` and `land` (the way to the target branch), `close`;
//! `landed` finds earlier landings. Below them: `plumbing` (Longhaul's own git directory), `tree`
//! and `private` (work trees and the repositories in them), `tip` (the base of new work), `rewind`
//! (a feature at an earlier commit), `snapshot` and `rescue` (nothing is lost), `protected` and
//! `head` (limits on agents), `checkout` and `own_files` (the user's files), and [`check_git`] with its
//! neighbours for a project's first use.

mod checkout;
mod checkpoint;
mod claim;
mod close;
mod command;
mod damage;
mod files;
mod filters;
mod guard;
mod hang;
mod head;
mod history;
mod init;
mod interrupted;
mod land;
mod landed;
mod list;
mod locks;
mod merge;
mod message;
mod moved;
mod names;
mod notes;
mod objects;
mod open;
mod outside;
mod own_files;
mod owner;
mod partial;
mod plumbing;
mod preflight;
mod private;
mod protected;
mod reader;
mod refresh;
mod refs;
mod repository;
mod rescue;
mod rewind;
mod rollback;
mod seal;
mod snapshot;
mod spare;
mod stale_locks;
mod steady;
mod tidy;
mod tip;
mod tree;
mod trees;
mod waiting;
mod work;

use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use longhaul_engine::{Attempt, Failure, Handler, Handlers, Probe};
use longhaul_workflows::contracts::{
    CheckOutTip, CloseInput, CloseWorktree, Follow, FollowInput, Land, LandInput, Landed,
    MergeCandidate, MergeInput, Merged, OpenInput, OpenWorktree, ProjectRef, RefreshInput,
    RefreshWorktree, Refreshed, RollBack, RollBackInput, Seal, SealInput, Sealed, WentBack,
    Worktree,
};

pub use checkpoint::{Keep, Kept};
pub use command::belong_to;
pub use damage::{Damage, find_damage, repair};
pub use init::{commit_files, has_commit, make_repository};
pub use landed::LandedWork;
pub use locks::{LockFile, lock_files};
pub use moved::carries_id;
pub use names::feature_run;
pub use owner::{DataDirectory, Ownership, other_owner, own};
pub use partial::{fetch_missing, missing_objects};
pub use preflight::preflight;
use refs::Repository;
pub(crate) use repository::refuse_own_branch;
pub(crate) use repository::tip_of;
pub use repository::{
    Checkout, branch_of, check_git, commits_not_in, exclude_own_files, has_branch,
    known_project_id, names_obstacle, project_id, share_repository,
};
pub use rewind::RewindTarget;
pub use rollback::WayBack;
pub use waiting::is_work_waiting;
pub(crate) use work::{Wanted, WorkTree};

use crate::disk::Disk;
use plumbing::Plumbing;
use reader::Reader;

/// The handlers of all git contracts. Clones share the locks that serialise commands on one
/// repository.
#[derive(Debug, Clone)]
pub struct GitHandlers {
    data_dir: PathBuf,
    /// Identifies this process among those that used the data directory.
    process: Arc<str>,
    disk: Disk,
    /// Opened repositories, by project id and path.
    known: Arc<std::sync::Mutex<HashMap<(String, PathBuf), Repository>>>,
    /// Project paths, by project id.
    places: Arc<std::sync::Mutex<HashMap<String, PathBuf>>>,
}

impl GitHandlers {
    /// Handlers that keep their work trees under `data_dir`.
    pub fn new(data_dir: impl Into<PathBuf>) -> Self {
        let process = process_name().into();
        let known = Arc::default();
        let places = Arc::default();
        Self { data_dir: data_dir.into(), process, disk: Disk::default(), known, places }
    }

    /// The data directory.
    pub(crate) fn data_dir(&self) -> &Path {
        &self.data_dir
    }

    /// Adds all of them to an engine's handlers.
    #[must_use]
    pub fn register(&self, handlers: Handlers) -> Handlers {
        handlers
            .with::<OpenWorktree>(self.clone())
            .with::<RefreshWorktree>(self.clone())
            .with::<Seal>(self.clone())
            .with::<CheckOutTip>(self.clone())
            .with::<MergeCandidate>(self.clone())
            .with::<Land>(self.clone())
            .with::<Follow>(self.clone())
            .with::<CloseWorktree>(self.clone())
            .with::<RollBack>(self.clone())
    }

    /// Returns the work tree of a feature to its branch after a lost session; see [`OpenWorktree`].
    pub(crate) async fn reopen_worktree(
        &self,
        input: &OpenInput,
        attempt: &Attempt,
    ) -> Result<Worktree, Failure> {
        self.repository(&input.project).await?.open_worktree(input, attempt).await
    }

    /// The tree of a commit.
    pub(crate) async fn tree_of(
        &self,
        project: &ProjectRef,
        commit: &str,
    ) -> Result<String, Failure> {
        self.repository(project).await?.tree_of(commit).await
    }

    async fn repository(&self, project: &ProjectRef) -> Result<Repository, Failure> {
        let root = self.root_of(project);
        let key = (project.id.clone(), root.clone());
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner).get(&key).cloned();
        match known {
            Some(repository) if repository.common.is_dir() => {
                if !repository.plumbing.is_there() {
                    repository.plumbing.make()?;
                }
                return Ok(repository);
            }
            // It was there: its disk is away, or a person moves it. No work is given up for that.
            Some(_) if !files::is_there(&root.join(".git")) => {
                let root = root.display();
                return Err(Failure::machine(format!("the repository {root} is not there")));
            }
            _ => {}
        }
        let opened = self.open_repository(project, root).await?;
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        // Another task may have opened it meanwhile: a repository must have only one lock.
        Ok(known
            .entry(key)
            .and_modify(|known| known.plumbing = opened.plumbing.clone())
            .or_insert(opened)
            .clone())
    }

    async fn open_repository(
        &self,
        project: &ProjectRef,
        root: PathBuf,
    ) -> Result<Repository, Failure> {
        let name = Path::new(&project.id);
        if project.id.is_empty()
            || !name.components().all(|part| matches!(part, Component::Normal(_)))
        {
            return Err(Failure::terminal(format!(
                "`{}` cannot be the id of a project: it is not a plain name",
                project.id
            )));
        }
        let worktrees = self.data_dir.join("worktrees").join(name);
        std::fs::create_dir_all(&worktrees)
            .map_err(|error| files::failed("make the directory", &worktrees, &error))?;
        let data_dir = files::canonical(&self.data_dir)?;
        let common = repository::common_dir(&root).await?;
        let own = data_dir.join("git").join(name);
        let plumbing = Plumbing::prepare(&own.join("plumbing"), &root, &common).await?;
        let repository = Repository {
            reader: Reader::new(&root, &common),
            ancestry: Arc::default(),
            complete: Arc::default(),
            root,
            common,
            worktrees: data_dir.join("worktrees").join(name),
            records: own.join("trees"),
            saved: data_dir.join("saved").join(name),
            plumbing,
            process: Arc::clone(&self.process),
            disk: self.disk.clone(),
            lock: Arc::default(),
            integration: Arc::default(),
        };
        repository.adopt_next().await?;
        Ok(repository)
    }

    /// Returns a result once everything that it refers to is on stable storage.
    async fn synced<T>(&self, project: &ProjectRef, result: T) -> Result<T, Failure> {
        self.repository(project).await?.sync().await?;
        Ok(result)
    }

    /// Marks the work trees as safe for the next process. Called at shutdown, when no work is
    /// active.
    pub async fn rest(&self) -> Result<(), Failure> {
        let known: Vec<_> =
            self.known.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect();
        for repository in known {
            repository.remove_spares()?;
            let mut used = repository.trees();
            used.retain(|tree| tree.is_in_use().unwrap_or(false));
            if !used.is_empty() {
                repository.sync().await?;
                used.iter().try_for_each(tree::Tree::end_use)?;
            }
        }
        Ok(())
    }
}

/// A name unique to each process and each set of handlers. It begins with that of the boot.
fn process_name() -> String {
    static COUNT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
    let count = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let since = std::time::UNIX_EPOCH.elapsed().unwrap_or_default();
    format!("{} {}-{}-{count}", crate::process::boot(), std::process::id(), since.as_nanos())
}

/// The time for git to end after its attempt was cancelled. Nearly every command takes less.
const GRACE: Duration = Duration::from_secs(3);

/// Runs the work of an attempt, which is dropped some time after a cancellation: git may be stuck.
async fn or_cancelled<T>(
    attempt: &Attempt,
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    tokio::pin!(work);
    tokio::select! {
        biased;
        result = &mut work => return result,
        () = attempt.cancelled() => {}
    }
    tokio::time::timeout(GRACE, work).await.unwrap_or_else(|_| Err(Failure::cancelled()))
}

/// Runs a change of the user's checkout to completion, even if the caller is dropped: the user
/// would see half a change.
async fn run_to_completion<T: Send + 'static>(
    work: impl Future<Output = Result<T, Failure>> + Send + 'static,
) -> Result<T, Failure> {
    let outcome = tokio::spawn(work).await;
    outcome.unwrap_or_else(|error| {
        Err(Failure::retryable(format!("moving the branch did not end: {error}")))
    })
}

#[async_trait]
impl Handler<OpenWorktree> for GitHandlers {
    async fn perform(&self, input: OpenInput, attempt: &Attempt) -> Result<Worktree, Failure> {
        let work = async {
            let worktree = self.reopen_worktree(&input, attempt).await?;
            self.synced(&input.project, worktree).await
        };
        or_cancelled(attempt, work).await
    }
}

#[async_trait]
impl Handler<RefreshWorktree> for GitHandlers {
    async fn perform(&self, input: RefreshInput, attempt: &Attempt) -> Result<Refreshed, Failure> {
        let work = async {
            self.repository(&input.project).await?.refresh_worktree(&input, attempt).await
        };
        or_cancelled(attempt, work).await
    }
}

#[async_trait]
impl Handler<Seal> for GitHandlers {
    async fn perform(&self, input: SealInput, attempt: &Attempt) -> Result<Sealed, Failure> {
        let work = async {
            let sealed = self.repository(&input.project).await?.seal(&input, attempt).await?;
            self.synced(&input.project, sealed).await
        };
        or_cancelled(attempt, work).await
    }
}

#[async_trait]
impl Handler<MergeCandidate> for GitHandlers {
    async fn perform(&self, input: MergeInput, attempt: &Attempt) -> Result<Merged, Failure> {
        let work = async {
            let repository = self.repository(&input.project).await?;
            let merged = repository.merge_candidate(&input, attempt).await?;
            self.synced(&input.project, merged).await
        };
        or_cancelled(attempt, work).await
    }
}

#[async_trait]
impl Handler<Land> for GitHandlers {
    async fn perform(&self, input: LandInput, attempt: &Attempt) -> Result<Landed, Failure> {
        let work = async {
            let repository = self.repository(&input.project).await?;
            run_to_completion(async move { repository.land(&input).await }).await
        };
        or_cancelled(attempt, work).await
    }

    async fn probe(&self, input: LandInput, _attempt: &Attempt) -> Probe<Landed> {
        let asked = match self.repository(&input.project).await {
            Ok(repository) => {
                run_to_completion(async move { repository.probe_landing(&input).await }).await
            }
            Err(failure) => Err(failure),
        };
        asked.unwrap_or_else(crate::machine::unknown_outcome)
    }
}

#[async_trait]
impl Handler<Follow> for GitHandlers {
    async fn perform(&self, input: FollowInput, attempt: &Attempt) -> Result<Landed, Failure> {
        let work = async {
            let repository = self.repository(&input.project).await?;
            run_to_completion(async move { repository.follow(&input).await }).await
        };
        or_cancelled(attempt, work).await
    }
}

#[async_trait]
impl Handler<CloseWorktree> for GitHandlers {
    async fn perform(&self, input: CloseInput, attempt: &Attempt) -> Result<(), Failure> {
        let work = async {
            self.repository(&input.project).await?.close_worktree(&input, attempt).await?;
            self.synced(&input.project, ()).await
        };
        or_cancelled(attempt, work).await
    }
}

#[async_trait]
impl Handler<RollBack> for GitHandlers {
    async fn perform(&self, input: RollBackInput, attempt: &Attempt) -> Result<WentBack, Failure> {
        let work = async {
            let repository = self.repository(&input.project).await?;
            run_to_completion(async move { repository.roll_back(&input).await }).await
        };
        or_cancelled(attempt, work).await
    }
}
