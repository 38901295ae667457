//! `RefreshWorktree`: the tip brought into a feature's branch.

use std::path::Path;

use longhaul_engine::{Attempt, Failure};
use longhaul_workflows::contracts::{RefreshConflict, RefreshInput, Refreshed};

use super::files;
use super::message::message;
use super::names::{branch, head_ref, rescue_ref};
use super::refs::{NewCommit, Repository};
use super::worktree::{Stand, Tree};

impl Repository {
    pub(super) async fn refresh_worktree(&self, input: &RefreshInput, attempt: &Attempt) -> Result<Refreshed, Failure> {
        let path = self.own_path(Path::new(&input.worktree), &input.project.id)?;
        let branch = branch(&input.feature);
        let tip = self.tip_to_start_from(&input.target).await?;
        let Some(head) = self.branch_commit(&branch).await? else {
            return Err(Failure::terminal(format!(
                "the branch `{branch}` is gone; it held the work on {}",
                input.feature
            )));
        };
        let tree = self.tree_to_refresh(&path, &branch, &head, attempt).await?;
        if self.is_ancestor(&tip, &head).await? {
            // An earlier attempt may have moved the branch and died before its files followed.
            self.bring(&tree, &branch, &head).await?;
            return self.refreshed(head, tip, None).await;
        }
        let commit = if self.is_ancestor(&head, &tip).await? {
            tip.clone()
        } else {
            let merged = self.merge_commits(&head, &tip).await?;
            if !merged.conflicts.is_empty() {
                let files = merged.conflicts.iter().map(|path| files::shown(path)).collect();
                let conflict = RefreshConflict { files, output: merged.output };
                self.bring(&tree, &branch, &head).await?;
                return self.refreshed(head, tip, Some(conflict)).await;
            }
            let subject = format!("{}: merge `{}`", input.feature, input.target);
            let message = message(&subject, "", &input.feature, &attempt.run);
            let new = NewCommit { tree: &merged.tree, parents: &[&head, &tip], message: &message, at: None };
            self.commit(&new).await?
        };
        self.move_ref(&head_ref(&branch), Some(&head), &commit).await?;
        self.bring(&tree, &branch, &commit).await?;
        self.refreshed(commit, tip, None).await
    }

    /// The feature's work tree, with uncommitted files kept under a rescue ref; made again if it is gone.
    async fn tree_to_refresh(&self, path: &Path, branch: &str, head: &str, attempt: &Attempt) -> Result<Tree, Failure> {
        let rescue = rescue_ref(&attempt.run, attempt.slot);
        if let Some(tree) = self.find_tree(path).await? {
            self.keep_uncommitted(&tree, branch, &rescue).await?;
            return Ok(tree);
        }
        self.keep_remains(path, head, &rescue).await?;
        let _held = self.exclusive().await;
        self.add_tree(path, Stand::Branch(branch)).await
    }

    async fn bring(&self, tree: &Tree, branch: &str, commit: &str) -> Result<(), Failure> {
        tree.git().args(["symbolic-ref", "HEAD", &head_ref(branch)]).run().await?;
        tree.reset_to(commit).await
    }

    async fn refreshed(
        &self,
        commit: String,
        tip: String,
        conflict: Option<RefreshConflict>,
    ) -> Result<Refreshed, Failure> {
        let base = match &conflict {
            Some(_) => self.merge_base(&commit, &tip).await?.unwrap_or_else(|| tip.clone()),
            None => tip.clone(),
        };
        let files = self.changes(&base, &commit).await?.iter().map(|change| files::shown(&change.path)).collect();
        Ok(Refreshed { commit, tip, files, conflict })
    }
}
