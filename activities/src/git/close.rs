//! `CloseWorktree`: nothing of a landed feature is left but the refs that keep its commits.

use std::path::Path;

use longhaul_engine::{Attempt, Failure};
use longhaul_workflows::backlog::FeatureId;
use longhaul_workflows::contracts::CloseInput;

use super::names::{branch, feature_ref, head_ref, rescue_ref};
use super::refs::Repository;

impl Repository {
    pub(super) async fn close_worktree(&self, input: &CloseInput, attempt: &Attempt) -> Result<(), Failure> {
        let (rescue, kept) = (rescue_ref(&attempt.run, attempt.slot), feature_ref(&attempt.run));
        if input.worktree.is_empty() {
            return self.close(&input.feature, &rescue, &kept).await;
        }
        let path = self.own_path(Path::new(&input.worktree), &input.project.id)?;
        self.close_at(&path, &input.feature, &rescue, &kept).await
    }

    /// The same for the work tree of a feature, wherever its run is.
    pub(super) async fn close(&self, feature: &FeatureId, rescue: &str, kept: &str) -> Result<(), Failure> {
        self.close_at(&self.worktrees.join(feature.as_str()), feature, rescue, kept).await
    }

    async fn close_at(&self, path: &Path, feature: &FeatureId, rescue: &str, kept: &str) -> Result<(), Failure> {
        let branch = branch(feature);
        let tip = self.branch_commit(&branch).await?;
        if let Some(tree) = self.find_tree(path).await? {
            self.keep_uncommitted(&tree, &branch, rescue).await?;
        } else if let Some(tip) = &tip {
            self.keep_remains(path, tip, rescue).await?;
        }
        let _held = self.exclusive().await;
        if let Some(tip) = &tip {
            self.keep_commits(kept, tip).await?;
        }
        self.drop_tree(path)?;
        match &tip {
            Some(tip) => self.delete_branch(&branch, tip).await,
            None => Ok(()),
        }
    }

    /// Points the ref at a commit. Commits that it kept and that are not part of this one get a ref beside it.
    pub(super) async fn keep_commits(&self, reference: &str, commit: &str) -> Result<(), Failure> {
        let earlier = self.commit_of(reference).await?;
        if earlier.as_deref() == Some(commit) {
            return Ok(());
        }
        if let Some(earlier) = &earlier
            && !self.is_ancestor(earlier, commit).await?
        {
            let beside = format!("{reference}-{}", &earlier[..12]);
            let there = self.commit_of(&beside).await?;
            self.move_ref(&beside, there.as_deref(), earlier).await?;
        }
        self.move_ref(reference, earlier.as_deref(), commit).await
    }

    /// A branch that the user has checked out to look at it stays.
    async fn delete_branch(&self, branch: &str, tip: &str) -> Result<(), Failure> {
        if !self.checkouts_of(branch).await?.is_empty() {
            return Ok(());
        }
        self.delete_ref(&head_ref(branch), tip).await
    }
}
