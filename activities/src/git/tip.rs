//! The tip: the commit on which the next finished feature lands.

use longhaul_engine::Failure;

use super::files;
use super::list;
use super::names::{NEXT, branch_ref};
use super::objects::refs::{NewCommit, Repository};
use super::protected::is_own;

/// The target and `longhaul/next`, and which of them is ahead.
#[derive(Debug)]
pub(super) enum TipState {
    /// Nothing waits on `longhaul/next`. It may still exist, as a part of the target.
    Target(String),
    /// `longhaul/next` is ahead of the target.
    Next(String),
    /// Each has commits that the other does not have.
    Both { target: String, next: String },
}

impl TipState {
    /// The base of new work; if both have commits, `longhaul/next`.
    pub(super) fn commit(&self) -> &str {
        match self {
            Self::Target(commit) | Self::Next(commit) | Self::Both { next: commit, .. } => commit,
        }
    }
}

impl Repository {
    /// The commit of the target branch, with all its files. A missing branch is waited for: a
    /// person moves or renames it, and no work is given up for that.
    pub(super) async fn target_commit(&self, target: &str) -> Result<String, Failure> {
        let commit = self.commit_of(&branch_ref(target)).await?.ok_or_else(|| {
            Failure::machine(format!(
                "there is no branch `{target}` in {}; make it, or set `target` under [project] in \
                 longhaul.toml",
                self.root.display()
            ))
        })?;
        self.complete(&commit).await?;
        Ok(commit)
    }

    pub(super) async fn tip_state(&self, target: &str) -> Result<TipState, Failure> {
        let target = self.target_commit(target).await?;
        let Some(next) = self.next().await? else { return Ok(TipState::Target(target)) };
        if self.is_ancestor(&next, &target).await? {
            return Ok(TipState::Target(target));
        }
        if self.is_ancestor(&target, &next).await? {
            return Ok(TipState::Next(next));
        }
        Ok(TipState::Both { target, next })
    }

    /// The tip. When the user committed to the target while work waits on `longhaul/next`, it is a
    /// reproducible merge of both; no branch moves to it, because no gate has passed on it. The
    /// caller holds the repository lock.
    pub(super) async fn tip(
        &self,
        target: &str,
        list_file: Option<&str>,
    ) -> Result<String, Failure> {
        match self.tip_state(target).await? {
            TipState::Target(commit) | TipState::Next(commit) => Ok(commit),
            TipState::Both { target: ours, next } => {
                self.join(target, &ours, &next, list_file).await
            }
        }
    }

    /// The merge base of a branch and the tip. Read-only, and cannot meet a conflict.
    pub(super) async fn base_of(
        &self,
        commit: &str,
        target: &str,
    ) -> Result<Option<String>, Failure> {
        match self.tip_state(target).await? {
            TipState::Target(tip) | TipState::Next(tip) => self.merge_base(commit, &tip).await,
            TipState::Both { target, next } => {
                let one = self.merge_base(commit, &target).await?;
                let other = self.merge_base(commit, &next).await?;
                let (Some(one), Some(other)) = (one, other) else { return Ok(None) };
                let later = if self.is_ancestor(&other, &one).await? { one } else { other };
                Ok(Some(later))
            }
        }
    }

    async fn join(
        &self,
        name: &str,
        target: &str,
        next: &str,
        list_file: Option<&str>,
    ) -> Result<String, Failure> {
        let merged = self.merge_commits(target, next).await?;
        let mut tree = merged.tree;
        let mut conflicts = Vec::new();
        for path in merged.conflicts {
            let path = files::shown(&path);
            match self.settled(&tree, target, next, &path, list_file).await? {
                Some(settled) => tree = settled,
                None => conflicts.push(path),
            }
        }
        if !conflicts.is_empty() {
            let checkouts = self.checkouts_of(name).await?;
            let place = checkouts.first().unwrap_or(&self.root).display();
            return Err(Failure::terminal(format!(
                "`{name}` and `{NEXT}` have both moved, and conflict in {}; run \
                 `git merge {NEXT}` on `{name}` in {place}, settle the conflict and commit, then \
                 run again",
                conflicts.join(", ")
            )));
        }
        let at = self.time_of(target).await?.max(self.time_of(next).await?);
        let message = format!("Merge branch '{NEXT}' into {name}\n");
        let parents = &[target, next];
        let joined = self
            .commit(&NewCommit { tree: &tree, parents, message: &message, at: Some(at) })
            .await?;
        self.remember_landing(&joined)?;
        Ok(joined)
    }

    /// The tree with a conflict resolved in a file that Longhaul itself writes; `None` for any
    /// other file.
    async fn settled(
        &self,
        tree: &str,
        target: &str,
        next: &str,
        path: &str,
        list_file: Option<&str>,
    ) -> Result<Option<String>, Failure> {
        let is_list = list_file == Some(path);
        if !is_list && !is_own(path.as_bytes()) {
            return Ok(None);
        }
        let versions = (self.file_in(target, path).await?, self.file_in(next, path).await?);
        let (Some((mode, users)), Some((_, longhauls))) = versions else { return Ok(None) };
        let bytes = if is_list {
            list::joined(&users, &longhauls).map(String::into_bytes)
        } else {
            Some(users)
        };
        match bytes {
            Some(bytes) => self.with_file(tree, path, &mode, &bytes).await.map(Some),
            None => Ok(None),
        }
    }

    pub(super) async fn time_of(&self, commit: &str) -> Result<i64, Failure> {
        let text = self
            .git()
            .args(["log", "-1", "--no-show-signature", "--format=%ct", commit])
            .text()
            .await?;
        text.parse()
            .map_err(|_| Failure::terminal(format!("commit {commit} has no readable date: {text}")))
    }
}
