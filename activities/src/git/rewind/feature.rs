//! Rewinds a feature: resets its branch and work tree to an earlier commit and keeps the old
//! state under refs.

use longhaul_engine::{Failure, RunId};
use longhaul_workflows::backlog::FeatureId;
use longhaul_workflows::contracts::ProjectRef;
use longhaul_workflows::feature::FeatureRunId;

use crate::git::GitHandlers;
use crate::git::names::{
    PendingRewindRefs, branch, branch_ref, feature_ref, pending_rewind_refs,
    pending_rewinds_prefix, rewind_rescue_ref, run_of_path,
};
use crate::git::objects::refs::Repository;
use crate::git::worktree::open::KeptRefs;
use crate::git::worktree::private::NewHead;

/// The feature to rewind, and the commit to rewind it to.
#[derive(Debug, Clone)]
pub struct RewindTarget {
    /// The project.
    pub project: ProjectRef,
    /// The feature. None of its runs may be active.
    pub feature: FeatureId,
    /// Its last run: the commits of the branch are kept under this run's ref.
    pub last: RunId,
    /// The new run: uncommitted files are kept under its rescue ref.
    pub next: RunId,
    /// The commit; `None`: the feature has no work tree yet.
    pub commit: Option<String>,
}

impl GitHandlers {
    /// Resets the branch and the work tree of a feature to a commit. Idempotent; nothing is lost.
    /// The rewind stays pending until [`GitHandlers::settle_rewind`] confirms or undoes it.
    ///
    /// # Errors
    /// Terminal if the commit is gone.
    pub async fn rewind_feature(&self, input: &RewindTarget) -> Result<(), Failure> {
        self.repository(&input.project).await?.rewind_feature(input).await
    }

    /// The runs for which a rewind is pending in a project.
    pub async fn pending_rewinds(&self, project: &ProjectRef) -> Result<Vec<RunId>, Failure> {
        let prefix = pending_rewinds_prefix(&project.id);
        let repository = self.repository(project).await?;
        let listed =
            repository.git().args(["for-each-ref", "--format=%(refname)", &prefix]).text().await?;
        let path = |name: &str| {
            let path = name.strip_prefix(&prefix)?.strip_suffix("/to")?;
            run_of_path(&format!("{}/{path}", project.id))
        };
        Ok(listed.lines().filter_map(path).collect())
    }

    /// Ends a pending rewind: confirms it if the new run exists, else restores the feature.
    pub async fn settle_rewind(
        &self,
        project: &ProjectRef,
        next: &RunId,
        is_there: bool,
    ) -> Result<(), Failure> {
        let repository = self.repository(project).await?;
        if !is_there && let Some(id) = FeatureRunId::of(next) {
            repository.undo_rewind(&id.feature, next).await?;
        }
        repository.end_rewind(next).await
    }
}

impl Repository {
    async fn rewind_feature(&self, input: &RewindTarget) -> Result<(), Failure> {
        let reference = rewind_rescue_ref(&input.next);
        let branch = branch(&input.feature);
        let tip = self.branch_commit(&branch).await?;
        let Some(commit) = &input.commit else {
            if let Some(tip) = &tip {
                self.begin_rewind(&input.next, Some(tip), tip).await?;
            }
            return self.close(&input.feature, &reference, &feature_ref(&input.last)).await;
        };
        if self.commit_of(commit).await?.is_none() {
            let root = self.root.display();
            return Err(Failure::terminal(format!(
                "commit {commit} is not in {root} any more; choose another step"
            )));
        }
        let tree = self.tree(input.feature.as_str());
        let commits = feature_ref(&input.last);
        self.keep_found(&tree, KeptRefs { branch: &branch, rescue: &reference, commits: &commits })
            .await?;
        let tip = self.branch_commit(&branch).await?;
        self.begin_rewind(&input.next, tip.as_deref(), commit).await?;
        let _guard = self.exclusive().await;
        if let Some(tip) = &tip
            && tip != commit
        {
            self.keep_commits(&commits, tip).await?;
        }
        if tip.as_ref() != Some(commit) {
            self.move_ref(&branch_ref(&branch), tip.as_deref(), commit).await?;
        }
        self.ready(&tree, NewHead::alone(&branch), commit).await
    }

    /// Records the old and the new commit of the branch before it moves. The record of an earlier
    /// attempt takes precedence: it has the true old commit.
    async fn begin_rewind(
        &self,
        next: &RunId,
        tip: Option<&str>,
        commit: &str,
    ) -> Result<(), Failure> {
        let _guard = self.exclusive().await;
        let PendingRewindRefs { from, to } = pending_rewind_refs(next);
        let was = self.commit_of(&from).await?;
        let goes = self.commit_of(&to).await?;
        match (tip, was) {
            _ if goes.is_some() => {}
            (Some(tip), was) => self.move_ref(&from, was.as_deref(), tip).await?,
            (None, Some(was)) => self.delete_ref(&from, &was).await?,
            (None, None) => {}
        }
        self.move_ref(&to, goes.as_deref(), commit).await
    }

    async fn end_rewind(&self, next: &RunId) -> Result<(), Failure> {
        let _guard = self.exclusive().await;
        let PendingRewindRefs { from, to } = pending_rewind_refs(next);
        for name in [to, from] {
            if let Some(commit) = self.commit_of(&name).await? {
                self.delete_ref(&name, &commit).await?;
            }
        }
        Ok(())
    }

    /// Restores the branch and the work tree, unless the branch has moved on since.
    async fn undo_rewind(&self, feature: &FeatureId, next: &RunId) -> Result<(), Failure> {
        let PendingRewindRefs { from, to } = pending_rewind_refs(next);
        let was = self.commit_of(&from).await?;
        let goes = self.commit_of(&to).await?;
        let branch = branch(feature);
        let tree = self.tree(feature.as_str());
        let tip = self.branch_commit(&branch).await?;
        if tip.is_some() && tip != was && tip != goes {
            return Ok(());
        }
        let rescue = rewind_rescue_ref(next);
        let is_there = tree.path.is_dir();
        self.keep_found(
            &tree,
            KeptRefs { branch: &branch, rescue: &rescue, commits: &feature_ref(next) },
        )
        .await?;
        let tip = self.branch_commit(&branch).await?;
        let _guard = self.exclusive().await;
        let Some(was) = was else {
            tree.remove()?;
            return match &tip {
                Some(tip) => self.delete_ref(&branch_ref(&branch), tip).await,
                None => Ok(()),
            };
        };
        if tip.as_ref() != Some(&was) {
            self.move_ref(&branch_ref(&branch), tip.as_deref(), &was).await?;
        }
        if is_there { self.ready(&tree, NewHead::alone(&branch), &was).await } else { Ok(()) }
    }
}
