//! The git activities: work trees, checkpoints and merges, run through the git command.
//!
//! Every handler reaches the same end from any state that a crash or a power cut can leave, and
//! returns when its effects are on stable storage. Read in this order: [`handlers`] (the
//! activities), `worktree::open` (a work tree for a feature), [`seal`] (a checkpoint),
//! `landing::merge` and `landing::land` (the way to the target branch), `worktree::close`;
//! `landing::landed` finds earlier landings.
//!
//! Below them, the lower first: [`command`] (runs git), [`damage`] and [`locks`] (left by a power
//! cut or a killed git), [`repository`] (the user's repository), [`objects`] (Longhaul's own git
//! directory, commits, refs and trees), [`checkout`] (the user's files), [`protected`] (limits on
//! agents), [`tip`] (the base of new work), [`worktree`] (work trees and the repositories in them).
//! [`rewind`] goes back, and [`setup`] is a project's first use.

mod checkout;
mod command;
mod damage;
mod files;
mod handlers;
mod landing;
mod list;
mod locks;
mod message;
mod names;
mod objects;
mod protected;
mod repository;
mod rewind;
mod seal;
mod setup;
mod tip;
mod worktree;

use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, PoisonError};

use longhaul_engine::{Attempt, Failure, Handlers};
use longhaul_workflows::backlog::FeatureId;
use longhaul_workflows::contracts::{
    CheckOutTip, CloseWorktree, Follow, Land, MergeCandidate, OpenInput, OpenWorktree, ProjectRef,
    RefreshWorktree, RollBack, Seal, Worktree,
};

pub use command::belong_to;
pub use command::hang::pipe_for_git;
pub use damage::{Damage, find_damage, is_replaceable, repair};
pub use landing::landed::Landings;
pub use landing::waiting::is_work_waiting;
pub use locks::{LockFile, lock_files};
pub use objects::partial::{
    MissingObjects, fetch_missing, lost_objects, missing_objects, restore_objects,
};
use objects::refs::Repository;
pub(crate) use repository::refuse_own_branch;
pub(crate) use repository::tip_of;
pub use repository::{
    Checkout, DAMAGED, branch_of, check_git, commits_not_in, exclude_own_files, has_branch,
    known_project_id, names_obstacle, project_id, share_repository,
};
pub use rewind::checkpoint::{StoreCheckpoint, StoredCheckpoint};
pub use rewind::feature::RewindTarget;
pub use rewind::rollback::RollbackCheck;
pub use setup::init::{commit_files, has_commit, make_repository};
pub use setup::moved::carries_id;
pub use setup::owner::{DataDirectory, Ownership, other_owner, own};
pub use setup::preflight::preflight;
pub(crate) use worktree::guard::Guard;
pub(crate) use worktree::work::{TreeRequest, WorkTree};

use crate::backlog_files::ListedVersions;
use crate::confine;
use crate::disk::Disk;
use objects::cat_file::Reader;
use objects::plumbing::Plumbing;

/// The directory of the work trees in the data directory.
const WORK_TREES: &str = "worktrees";

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

    /// Records the directory of the held-out checks of a project, or that it has none.
    pub(crate) fn record_held_out(
        &self,
        project: &ProjectRef,
        directory: Option<&Path>,
    ) -> Result<(), Failure> {
        let record = confine::held_out::record_of(&self.data_dir, &project.id);
        match directory {
            Some(directory) => files::write(&record, directory.as_os_str().as_encoded_bytes()),
            None => files::remove(&record),
        }
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

    /// The path of the work tree of a feature, whether it exists or not.
    pub(crate) fn feature_tree_path(&self, project: &ProjectRef, feature: &FeatureId) -> PathBuf {
        let data_dir = files::canonical(&self.data_dir).unwrap_or_else(|_| self.data_dir.clone());
        data_dir.join(WORK_TREES).join(&project.id).join(feature.as_str())
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
        let worktrees = self.data_dir.join(WORK_TREES).join(name);
        std::fs::create_dir_all(&worktrees)
            .map_err(|error| files::failed("make the directory", &worktrees, &error))?;
        let data_dir = files::canonical(&self.data_dir)?;
        let common = command::directories::common_dir(&root).await?;
        let own = data_dir.join("git").join(name);
        let plumbing = Plumbing::prepare(&own.join("plumbing"), &root, &common).await?;
        let repository = Repository {
            reader: Reader::new(&root, &common),
            ancestry: Arc::default(),
            complete: Arc::default(),
            root,
            common,
            worktrees: data_dir.join(WORK_TREES).join(name),
            records: own.join("trees"),
            saved: data_dir.join("saved").join(name),
            plumbing,
            process: Arc::clone(&self.process),
            disk: self.disk.clone(),
            lock: Arc::default(),
            listed: ListedVersions::default(),
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
    pub async fn release_work_trees(&self) -> Result<(), Failure> {
        let known: Vec<_> =
            self.known.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect();
        for repository in known {
            repository.remove_spares()?;
            let mut used = repository.trees();
            used.retain(|tree| tree.is_in_use().unwrap_or(false));
            if !used.is_empty() {
                repository.sync().await?;
                used.iter().try_for_each(worktree::tree::Tree::end_use)?;
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
