//! `RefreshWorktree`: merges the tip into a feature's branch.

use longhaul_engine::{Attempt, Failure};
use longhaul_workflows::contracts::{RefreshConflict, RefreshInput, Refreshed};

use crate::git::files;
use crate::git::message::message;
use crate::git::names::{branch, branch_ref, feature_ref, rescue_ref};
use crate::git::objects::refs::{NewCommit, Repository};
use crate::git::worktree::open::KeptRefs;
use crate::git::worktree::private::NewHead;
use crate::git::worktree::tree::Tree;

impl Repository {
    pub(in crate::git) async fn refresh_worktree(
        &self,
        input: &RefreshInput,
        attempt: &Attempt,
    ) -> Result<Refreshed, Failure> {
        let tree = self.feature_tree(&input.feature);
        let branch = branch(&input.feature);
        let tip = self.start_commit(&input.target).await?;
        let rescue = rescue_ref(&attempt.run, attempt.slot);
        let commits = feature_ref(&attempt.run);
        self.keep_found(&tree, KeptRefs { branch: &branch, rescue: &rescue, commits: &commits })
            .await?;
        let Some(head) = self.branch_commit(&branch).await? else {
            return Err(Failure::terminal(format!(
                "the branch `{branch}` is gone; it held the work on {}",
                input.feature
            )));
        };
        let new_head = NewHead::on(&branch, &input.target);
        let left = self.left_by(&tree, &head, &tip).await?;
        if left.is_none() && self.is_ancestor(&tip, &head).await? {
            // An earlier attempt may have moved the branch and died before it updated the files.
            self.ready(&tree, new_head, &head).await?;
            return self.refreshed(&tree, head, tip, None).await;
        }
        let commit = if self.is_ancestor(&head, &tip).await? {
            tip.clone()
        } else {
            let merged = self.merge_on_base(&head, &tip, left.as_deref()).await?;
            if !merged.conflicts.is_empty() {
                let files = merged.conflicts.iter().map(|path| files::shown(path)).collect();
                let conflict = RefreshConflict { files, output: merged.output };
                self.ready(&tree, new_head, &head).await?;
                return self.refreshed(&tree, head, tip, Some(conflict)).await;
            }
            let subject = format!("{}: merge `{}`", input.feature, input.target);
            let message = message(&subject, "", &input.feature, &attempt.run);
            // A history with what the target has no more would take it away again, if it returned.
            let parents: &[&str] = if left.is_some() { &[&tip] } else { &[&head, &tip] };
            if left.is_some() {
                self.keep_commits(&commits, &head).await?;
            }
            let new = NewCommit { tree: &merged.tree, parents, message: &message, at: None };
            self.commit(&new).await?
        };
        self.move_ref(&branch_ref(&branch), Some(&head), &commit).await?;
        self.ready(&tree, new_head, &commit).await?;
        tree.set_base(&tip)?;
        self.refreshed(&tree, commit, tip, None).await
    }

    async fn refreshed(
        &self,
        tree: &Tree,
        commit: String,
        tip: String,
        conflict: Option<RefreshConflict>,
    ) -> Result<Refreshed, Failure> {
        let base = match &conflict {
            Some(_) => self.merge_base(&commit, &tip).await?.unwrap_or_else(|| tip.clone()),
            None => tip.clone(),
        };
        self.remember_base(tree, &commit, &tip).await?;
        let files = self.changed_files(&base, &commit).await?;
        Ok(Refreshed { commit, tip, files, conflict, is_edited: false })
    }
}
