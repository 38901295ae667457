//! Commits and refs: reads them, and moves refs by compare-and-swap.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError};

use longhaul_engine::Failure;
use tokio::sync::{Mutex, MutexGuard};

use super::cat_file::Reader;
use super::plumbing::Plumbing;
use crate::backlog_files::ListedVersions;
use crate::disk::Disk;
use crate::git::command::Git;
use crate::git::files;
use crate::git::locks::stale::{clear_lock, clear_lock_of_packed};
use crate::git::names::is_own_ref;

/// The number of cached ancestry answers.
const KNOWN_ANCESTRY: usize = 1000;

/// One repository, as the handlers see it.
#[derive(Debug, Clone)]
pub(in crate::git) struct Repository {
    /// The top of the user's checkout.
    pub(in crate::git) root: PathBuf,
    /// The common git directory of all checkouts.
    pub(in crate::git) common: PathBuf,
    /// The directory of this project's work trees.
    pub(in crate::git) worktrees: PathBuf,
    /// The directory of Longhaul's records of them.
    pub(in crate::git) records: PathBuf,
    /// The directory for the user's files that are set aside while git changes them.
    pub(in crate::git) saved: PathBuf,
    pub(in crate::git) plumbing: Plumbing,
    pub(in crate::git) reader: Reader,
    /// Cache of [`Repository::is_ancestor`]: history does not change.
    pub(in crate::git) ancestry: Arc<std::sync::Mutex<HashMap<(String, String), bool>>>,
    /// The last commit of which a partial clone has all objects.
    pub(in crate::git) complete: Arc<std::sync::Mutex<String>>,
    /// Identifies this process: other marks in `records` belong to dead processes.
    pub(in crate::git) process: Arc<str>,
    pub(in crate::git) disk: Disk,
    pub(in crate::git) lock: Arc<Mutex<()>>,
    pub(in crate::git) listed: ListedVersions,
    /// A lock for each integration tree, by its number.
    pub(in crate::git) integration: Arc<std::sync::Mutex<HashMap<u32, Arc<Mutex<()>>>>>,
}

/// A commit created without a work tree.
#[derive(Debug)]
pub(in crate::git) struct NewCommit<'a> {
    pub(in crate::git) tree: &'a str,
    pub(in crate::git) parents: &'a [&'a str],
    pub(in crate::git) message: &'a str,
    /// Seconds since 1970, for a reproducible commit; `None`: now.
    pub(in crate::git) at: Option<i64>,
}

/// The change of a ref: from a commit to another one. `None`: it does not exist.
#[derive(Debug)]
pub(in crate::git) struct RefChange {
    name: String,
    from: Option<String>,
    to: Option<String>,
}

impl RefChange {
    pub(in crate::git) fn new(name: &str, from: Option<&str>, to: Option<&str>) -> Self {
        Self { name: name.to_owned(), from: from.map(str::to_owned), to: to.map(str::to_owned) }
    }
}

impl Repository {
    /// A command in the user's checkout, for refs and reachability.
    pub(in crate::git) fn git(&self) -> Git {
        Git::at(&self.root)
    }

    /// Locks the repository. Features of one repository run concurrently and would collide in git's
    /// own locks.
    pub(in crate::git) async fn exclusive(&self) -> MutexGuard<'_, ()> {
        self.lock.lock().await
    }

    /// The commit that a ref or another name resolves to.
    pub(in crate::git) async fn commit_of(&self, name: &str) -> Result<Option<String>, Failure> {
        let name = format!("{name}^{{commit}}");
        self.reader.object(&name).await
    }

    /// The tree of a commit.
    pub(in crate::git) async fn tree_of(&self, commit: &str) -> Result<String, Failure> {
        let name = format!("{commit}^{{tree}}");
        match self.reader.object(&name).await? {
            Some(tree) => Ok(tree),
            // It fails and gives the reason.
            None => self.git().args(["rev-parse", "--verify", &name]).text().await,
        }
    }

    /// Whether `ancestor` is an ancestor of `commit`, or is `commit` itself; both are full object
    /// names.
    pub(in crate::git) async fn is_ancestor(
        &self,
        ancestor: &str,
        commit: &str,
    ) -> Result<bool, Failure> {
        if ancestor == commit {
            return Ok(true);
        }
        let pair = (ancestor.to_owned(), commit.to_owned());
        if let Some(known) = self.ancestry.lock().unwrap_or_else(PoisonError::into_inner).get(&pair)
        {
            return Ok(*known);
        }
        let answer = match self.is_near_ancestor(ancestor, commit).await? {
            Some(answer) => answer,
            None => {
                self.git().args(["merge-base", "--is-ancestor", ancestor, commit]).answer().await?
            }
        };
        let mut known = self.ancestry.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= KNOWN_ANCESTRY {
            known.clear();
        }
        known.insert(pair, answer);
        Ok(answer)
    }

    /// The merge base of two commits.
    pub(in crate::git) async fn merge_base(
        &self,
        one: &str,
        other: &str,
    ) -> Result<Option<String>, Failure> {
        if one == other {
            return Ok(Some(one.to_owned()));
        }
        match self.is_near_ancestor(one, other).await? {
            Some(true) => return Ok(Some(one.to_owned())),
            Some(false) => return Ok(Some(other.to_owned())),
            None => {}
        }
        self.git().args(["merge-base", one, other]).find().await
    }

    /// Moves a ref to a commit, if it is still at `from` (`None`: absent).
    pub(in crate::git) async fn move_ref(
        &self,
        name: &str,
        from: Option<&str>,
        to: &str,
    ) -> Result<(), Failure> {
        self.change_refs(&[RefChange::new(name, from, Some(to))]).await
    }

    /// Deletes a ref, if it is still at `from`.
    pub(in crate::git) async fn delete_ref(&self, name: &str, from: &str) -> Result<(), Failure> {
        self.change_refs(&[RefChange::new(name, Some(from), None)]).await
    }

    /// Changes all of these refs, or none if one of them has moved.
    pub(in crate::git) async fn change_refs(&self, changes: &[RefChange]) -> Result<(), Failure> {
        let mut input = String::new();
        for RefChange { name, from, to } in changes {
            let expected = from.as_deref().unwrap_or_default();
            if is_own_ref(name) {
                clear_lock(&self.common.join(format!("{name}.lock")), None).await?;
                input.push_str("option no-deref\0");
            }
            match (from, to) {
                (None, Some(to)) => input.push_str(&format!("create {name}\0{to}\0")),
                (_, Some(to)) => input.push_str(&format!("update {name}\0{to}\0{expected}\0")),
                (_, None) => {
                    clear_lock_of_packed(&self.common).await?;
                    input.push_str(&format!("delete {name}\0{expected}\0"));
                }
            }
        }
        if input.is_empty() {
            return Ok(());
        }
        let git = self.git().args(["update-ref", "--create-reflog", "-m", "longhaul"]);
        git.args(["-z", "--stdin"]).input(input).keep_running_on_drop().run().await.map(drop)
    }

    /// Creates a commit from a tree, in the name of the user: the work lands in the user's
    /// repository.
    pub(in crate::git) async fn commit(&self, new: &NewCommit<'_>) -> Result<String, Failure> {
        let mut git = self.plumbing.git();
        if let Some(at) = new.at {
            let date = format!("@{at} +0000");
            git = git.env("GIT_AUTHOR_DATE", &date).env("GIT_COMMITTER_DATE", &date);
        }
        git = git.args(["commit-tree", new.tree, "-F", "-"]);
        for parent in new.parents {
            git = git.args(["-p", parent]);
        }
        git.input(new.message).text().await
    }

    /// The tags, as lines of a `packed-refs` file.
    pub(in crate::git) async fn tags(&self) -> Result<Vec<u8>, Failure> {
        let loose = std::fs::read_dir(self.common.join("refs/tags"));
        if !loose.is_ok_and(|mut loose| loose.next().is_none()) {
            let args = ["for-each-ref", "--format=%(objectname) %(refname)", "refs/tags"];
            return Ok(self.git().args(args).run().await?.stdout);
        }
        let packed = files::read(&self.common.join("packed-refs"))?.unwrap_or_default();
        let is_tag = |line: &&[u8]| line.windows(11).any(|part| part == b" refs/tags/");
        Ok(packed
            .split_inclusive(|byte| *byte == b'\n')
            .filter(is_tag)
            .flatten()
            .copied()
            .collect())
    }

    /// Returns when the repository and the work trees are on stable storage.
    pub(in crate::git) async fn sync(&self) -> Result<(), Failure> {
        let synced = self.disk.sync(&[&self.common, &self.root, &self.worktrees]).await;
        // The work is not repeated because of a failed sync: it waits until the sync succeeds.
        synced.map_err(|error| {
            let root = self.root.display();
            Failure::machine(format!("cannot sync the file systems of {root}: {error}"))
        })
    }
}
