//! Taking a feature back: its branch and work tree at an earlier commit, with what was there kept under refs.

use longhaul_engine::{Failure, RunId};
use longhaul_workflows::backlog::FeatureId;
use longhaul_workflows::contracts::ProjectRef;

use super::GitHandlers;
use super::names::{branch, feature_ref, head_ref, taken_back_ref};
use super::refs::Repository;
use super::worktree::Stand;

/// Which feature, and to where.
#[derive(Debug, Clone)]
pub struct TakeBack {
    /// The project.
    pub project: ProjectRef,
    /// The feature. None of its runs may be under way.
    pub feature: FeatureId,
    /// Its last run: what its branch holds is kept as the work of that one.
    pub last: RunId,
    /// The run that begins there; what is uncommitted is kept as found by that one.
    pub next: RunId,
    /// The commit; `None`: it has no work tree yet.
    pub commit: Option<String>,
}

impl GitHandlers {
    /// Puts the branch and the work tree of a feature at a commit. Doing it again changes nothing; nothing is lost.
    ///
    /// # Errors
    /// Terminal if the commit is gone.
    pub async fn take_back(&self, input: &TakeBack) -> Result<(), Failure> {
        self.repository(&input.project).await?.take_back(input).await
    }
}

impl Repository {
    async fn take_back(&self, input: &TakeBack) -> Result<(), Failure> {
        let reference = taken_back_ref(&input.next);
        let Some(commit) = &input.commit else {
            return self.close(&input.feature, &reference, &feature_ref(&input.last)).await;
        };
        if self.commit_of(commit).await?.is_none() {
            let root = self.root.display();
            return Err(Failure::terminal(format!("commit {commit} is not in {root} any more; choose another step")));
        }
        let path = self.worktrees.join(input.feature.as_str());
        let branch = branch(&input.feature);
        let tip = self.branch_commit(&branch).await?;
        let tree = self.find_tree(&path).await?;
        match &tree {
            Some(tree) => drop(self.keep_uncommitted(tree, &branch, &reference).await?),
            None => self.keep_remains(&path, tip.as_ref().unwrap_or(commit), &reference).await?,
        }
        let _held = self.exclusive().await;
        if let Some(tip) = &tip
            && tip != commit
        {
            self.keep_commits(&feature_ref(&input.last), tip).await?;
        }
        if tip.as_ref() != Some(commit) {
            self.move_ref(&head_ref(&branch), tip.as_deref(), commit).await?;
        }
        let tree = match tree {
            Some(tree) => tree,
            None => self.add_tree(&path, Stand::Branch(&branch)).await?,
        };
        tree.git().args(["symbolic-ref", "HEAD", &head_ref(&branch)]).run().await?;
        tree.reset_to(commit).await
    }
}
