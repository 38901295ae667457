//! `OpenWorktree`: the feature's branch, checked out and clean.

use std::path::{Path, PathBuf};

use longhaul_engine::{Attempt, Failure};
use longhaul_workflows::contracts::{OpenInput, Worktree};

use super::names::{NEXT, branch, head_ref, rescue_ref};
use super::refs::Repository;
use super::repository::operation_in;
use super::snapshot::Snapshot;
use super::tip::Lead;
use super::trees::{Change, index_entries};
use super::worktree::{Stand, Tree};

impl Repository {
    pub(super) async fn open_worktree(&self, input: &OpenInput, attempt: &Attempt) -> Result<Worktree, Failure> {
        let path = self.worktrees.join(input.feature.as_str());
        let branch = branch(&input.feature);
        let reference = rescue_ref(&attempt.run, attempt.slot);
        let tip = self.tip_to_start_from(&input.target).await?;
        let start = self.ensure_branch(&branch, &tip).await?;
        let (tree, clean) = if let Some(tree) = self.find_tree(&path).await? {
            let clean = self.keep_uncommitted(&tree, &branch, &reference).await?;
            (tree, clean)
        } else {
            self.keep_remains(&path, &start, &reference).await?;
            let _held = self.exclusive().await;
            (self.add_tree(&path, Stand::Branch(&branch)).await?, false)
        };
        if !clean {
            tree.git().args(["symbolic-ref", "HEAD", &head_ref(&branch)]).run().await?;
        }
        let behind = start != tip && self.is_ancestor(&start, &tip).await?;
        let head = if behind { tip.clone() } else { start };
        if behind || !clean {
            tree.reset_to(&head).await?;
        }
        let rescued = self.commit_of(&reference).await?.map(|_| reference);
        let has_work = head != tip && !self.is_ancestor(&head, &tip).await?;
        Ok(Worktree { path: shown(&path), branch, head, rescued, has_work })
    }

    /// A conflict between the target and `longhaul/next` does not keep a feature from being worked on; merging will tell.
    pub(super) async fn tip_to_start_from(&self, target: &str) -> Result<String, Failure> {
        let _held = self.exclusive().await;
        match self.tip(target, None).await {
            Ok(tip) => Ok(tip),
            Err(failure) => match self.lead(target).await? {
                Lead::Both { next, .. } => {
                    tracing::warn!(%failure, "starting from {NEXT}");
                    Ok(next)
                }
                _ => Err(failure),
            },
        }
    }

    async fn ensure_branch(&self, branch: &str, tip: &str) -> Result<String, Failure> {
        let _held = self.exclusive().await;
        if let Some(commit) = self.branch_commit(branch).await? {
            return Ok(commit);
        }
        self.move_ref(&head_ref(branch), None, tip).await?;
        Ok(tip.to_owned())
    }

    /// Keeps what is in a work tree and not in its branch. Says whether it stands clean on the branch already.
    pub(super) async fn keep_uncommitted(&self, tree: &Tree, branch: &str, reference: &str) -> Result<bool, Failure> {
        let on_branch = tree.branch().await?.as_deref() == Some(head_ref(branch).as_str());
        let branch_tip = self.branch_commit(branch).await?;
        let base = tree.head().await?.or_else(|| branch_tip.clone());
        let Some(base) = base else { return Ok(false) };
        // Without an index its files were perhaps never all checked out: what is missing was not deleted by anybody then.
        let was_checked_out = index_entries(self.git(), &tree.index()).await?.is_some();
        let snapshot = Snapshot::take(self, &tree.path, &tree.index(), &base).await?;
        let state = snapshot.tree().await?;
        let changes = self.changes(&base, &state).await?;
        let is_ours = |change: &Change| !was_checked_out && !change.after.is_there();
        let has_changes = !tree.is_half_reset() && !changes.iter().all(is_ours);
        let strayed = match &branch_tip {
            Some(tip) => !self.is_ancestor(&base, tip).await?,
            None => true,
        };
        if has_changes || strayed {
            let message = format!("Longhaul: found in the work tree of {branch}\n");
            self.keep(reference, &state, Some(&base), &message).await?;
        }
        Ok(on_branch
            && was_checked_out
            && !tree.is_half_reset()
            && changes.is_empty()
            && operation_in(&tree.admin).is_none())
    }

    /// Keeps what is left in the directory of a broken work tree.
    pub(super) async fn keep_remains(&self, path: &Path, base: &str, reference: &str) -> Result<(), Failure> {
        let has_files = std::fs::read_dir(path)
            .is_ok_and(|entries| entries.filter_map(Result::ok).any(|entry| entry.file_name() != ".git"));
        if !has_files {
            return Ok(());
        }
        let index = self.admin_of(path)?.map_or_else(PathBuf::new, |admin| admin.join("index"));
        let state = Snapshot::take(self, path, &index, base).await?.tree().await?;
        // Missing files say nothing here; files that are there and differ are somebody's work.
        if self.changes(base, &state).await?.iter().any(|change| change.after.is_there()) {
            self.keep(reference, &state, Some(base), "Longhaul: found in a broken work tree\n").await?;
        }
        Ok(())
    }
}

pub(super) fn shown(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
