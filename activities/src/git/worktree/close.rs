//! `CloseWorktree`: removes everything of a landed feature except the refs that keep its commits.

use longhaul_engine::{Attempt, Failure};
use longhaul_workflows::backlog::FeatureId;
use longhaul_workflows::contracts::CloseInput;

use super::open::KeptRefs;
use crate::git::names::{branch, branch_ref, feature_ref, fetched_refs, gates_tree, rescue_ref};
use crate::git::objects::refs::{RefChange, Repository};

impl Repository {
    pub(in crate::git) async fn close_worktree(
        &self,
        input: &CloseInput,
        attempt: &Attempt,
    ) -> Result<(), Failure> {
        let rescue = rescue_ref(&attempt.run, attempt.slot);
        self.close(&input.feature, &rescue, &feature_ref(&attempt.run)).await?;
        self.tidy().await
    }

    /// Removes the trees and the branch of a feature. One ref keeps its commits, another its
    /// uncommitted files.
    pub(in crate::git) async fn close(
        &self,
        feature: &FeatureId,
        rescue: &str,
        commits: &str,
    ) -> Result<(), Failure> {
        let branch = branch(feature);
        let tree = self.tree(feature.as_str());
        self.keep_found(&tree, KeptRefs { branch: &branch, rescue, commits }).await?;
        let _guard = self.exclusive().await;
        tree.remove()?;
        self.retire(&self.tree(&gates_tree(feature.as_str()))).await?;
        let mut changes = Vec::new();
        let fetched = fetched_refs(&tree.name());
        for fetched in [fetched.branch, fetched.head] {
            if let Some(commit) = self.commit_of(&fetched).await? {
                changes.push(RefChange::new(&fetched, Some(&commit), None));
            }
        }
        if let Some(tip) = self.branch_commit(&branch).await? {
            changes.extend(self.to_keep_commits(commits, &tip).await?);
            // The user may have it checked out.
            if self.checkouts_of(&branch).await?.is_empty() {
                changes.push(RefChange::new(&branch_ref(&branch), Some(&tip), None));
            }
        }
        self.change_refs(&changes).await
    }

    /// Points the ref at a commit. Commits that it kept and that are not ancestors of this one get
    /// a ref of their own.
    pub(in crate::git) async fn keep_commits(
        &self,
        reference: &str,
        commit: &str,
    ) -> Result<(), Failure> {
        let changes = self.to_keep_commits(reference, commit).await?;
        self.change_refs(&changes).await
    }

    async fn to_keep_commits(
        &self,
        reference: &str,
        commit: &str,
    ) -> Result<Vec<RefChange>, Failure> {
        let earlier = self.commit_of(reference).await?;
        if earlier.as_deref() == Some(commit) {
            return Ok(Vec::new());
        }
        let mut changes = vec![RefChange::new(reference, earlier.as_deref(), Some(commit))];
        if let Some(earlier) = &earlier
            && !self.is_ancestor(earlier, commit).await?
        {
            let beside = format!("{reference}-{}", &earlier[..12]);
            let there = self.commit_of(&beside).await?;
            changes.push(RefChange::new(&beside, there.as_deref(), Some(earlier)));
        }
        Ok(changes)
    }
}
