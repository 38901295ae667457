//! Work trees for programs, ready to run something in: an agent's, the gates' and integration
//! trees.

use std::path::Path;

use longhaul_engine::{Attempt, Failure};
use longhaul_workflows::backlog::FeatureId;
use longhaul_workflows::contracts::{ProjectRef, StepTree};

use tokio::sync::OwnedMutexGuard;

use super::open::KeptRefs;
use super::private::NewHead;
use super::tree::{Condition, Tree};
use crate::git::GitHandlers;
use crate::git::names::{branch, branch_ref, feature_ref, gates_tree, rescue_ref};
use crate::git::objects::refs::Repository;

/// The work tree that a caller needs.
#[derive(Clone, Copy)]
pub(crate) struct TreeRequest<'a> {
    pub(crate) project: &'a ProjectRef,
    pub(crate) feature: &'a FeatureId,
    pub(crate) tree: StepTree,
    /// The expected commit, if known.
    pub(crate) commit: Option<&'a str>,
    /// The attempt. Its rescue ref keeps the content of a tree that must be recreated.
    pub(crate) attempt: &'a Attempt,
}

/// An existing work tree.
#[derive(Debug)]
pub(crate) struct WorkTree {
    repository: Repository,
    tree: Tree,
    /// The feature's branch; `None`: a detached HEAD.
    branch: Option<String>,
    /// The lock of an integration tree.
    _guard: Option<OwnedMutexGuard<()>>,
}

impl GitHandlers {
    /// The work tree of a step. A missing or suspect one is recreated from commits; its content
    /// is kept under the rescue ref.
    pub(crate) async fn work_tree(&self, wanted: &TreeRequest<'_>) -> Result<WorkTree, Failure> {
        let repository = self.repository(wanted.project).await?;
        if let StepTree::Integration(number) = wanted.tree {
            let Some(commit) = wanted.commit else {
                let message = "an integration work tree is requested without a commit";
                return Err(Failure::terminal(message.to_owned()));
            };
            let (tree, guard) = repository.integration_at(commit, number).await?;
            return Ok(WorkTree { repository, tree, branch: None, _guard: Some(guard) });
        }
        let tree = repository.feature_tree(wanted.feature);
        let branch = branch(wanted.feature);
        if tree.condition()? == Condition::Sound {
            tree.begin_use()?;
        } else {
            tracing::warn!(tree = %tree.path.display(), "making a work tree again");
            repository.recreate(&tree, &branch, wanted).await?;
        }
        Ok(WorkTree::of_feature(repository, tree, wanted.feature))
    }

    /// The tree in which the gates of a feature run, at a commit. No agent works there. Merged
    /// results have a tree of their own.
    pub(crate) async fn gates_tree(
        &self,
        wanted: &TreeRequest<'_>,
        commit: &str,
    ) -> Result<WorkTree, Failure> {
        let repository = self.repository(wanted.project).await?;
        let (tree, guard) = if let StepTree::Integration(number) = wanted.tree {
            let (tree, guard) = repository.integration_at(commit, number).await?;
            (tree, Some(guard))
        } else {
            let tree = repository.tree(&gates_tree(wanted.feature.as_str()));
            repository.take_spare(&tree).await?;
            repository.ready(&tree, NewHead::Commit, commit).await?;
            (tree, None)
        };
        Ok(WorkTree { repository, tree, branch: None, _guard: guard })
    }
}

impl GitHandlers {
    /// The tree in which the gates of a feature have passed on this content, as they left it:
    /// further gates can go on in it. `None`: there is none.
    pub(crate) async fn gates_tree_as_left(
        &self,
        wanted: &TreeRequest<'_>,
        content: &str,
    ) -> Result<Option<WorkTree>, Failure> {
        let repository = self.repository(wanted.project).await?;
        if wanted.tree != StepTree::Feature {
            return Ok(None);
        }
        let tree = repository.tree(&gates_tree(wanted.feature.as_str()));
        let is_left = tree.is_in_use()?
            && tree.has_checked(content)?
            && tree.has_tracked_files_as_indexed().await?;
        Ok(is_left.then(|| WorkTree { repository, tree, branch: None, _guard: None }))
    }
}

impl WorkTree {
    /// The tree of a feature.
    pub(in crate::git) fn of_feature(
        repository: Repository,
        tree: Tree,
        feature: &FeatureId,
    ) -> Self {
        Self { repository, tree, branch: Some(branch(feature)), _guard: None }
    }

    /// Records durably that this process uses it, until [`WorkTree::settle`].
    pub(crate) fn begin_use(&self) -> Result<(), Failure> {
        self.tree.begin_use()
    }

    /// Records that a held-out check runs in it. The tree is made again before its next use: the
    /// check may leave its files there.
    pub(crate) fn begin_held_out(&self) -> Result<(), Failure> {
        self.tree.begin_held_out()
    }

    /// Records that checks have passed on this content in it, and that nothing has changed it
    /// since.
    pub(crate) fn remember_checks(&self, content: &str) -> Result<(), Failure> {
        self.tree.set_checked(content)
    }

    /// Records that checks begin in it: their build output is not kept for the next ones.
    pub(crate) fn begin_checks(&self) -> Result<(), Failure> {
        self.tree.forget_checked()?;
        self.tree.forget_set_up()
    }

    /// Whether it is recorded as in use.
    pub(crate) fn is_in_use(&self) -> Result<bool, Failure> {
        self.tree.is_in_use()
    }

    /// A directory for records about it, which no program in it can write. They go when the tree is
    /// made again or removed.
    pub(crate) fn records(&self) -> &Path {
        self.tree.records()
    }

    /// Its directory.
    pub(crate) fn path(&self) -> &Path {
        &self.tree.path
    }

    pub(in crate::git) fn repository(&self) -> &Repository {
        &self.repository
    }

    /// Whether the project's set-up has succeeded in it; with a commit: at that one.
    pub(crate) fn is_set_up(&self, commit: Option<&str>) -> Result<bool, Failure> {
        self.tree.is_set_up(commit)
    }

    /// Begins the project's set-up.
    pub(crate) async fn begin_setup(&self) -> Result<(), Failure> {
        self.tree.begin_setup().await
    }

    /// Records the end of a set-up, and the commit if it succeeded.
    pub(crate) fn end_setup(&self, succeeded_at: Option<&str>) -> Result<(), Failure> {
        self.tree.end_setup(succeeded_at)
    }

    /// The commit of its last reset.
    pub(crate) fn at(&self) -> Result<String, Failure> {
        let missing = || {
            Failure::retryable(format!(
                "{} was never brought to a commit",
                self.tree.path.display()
            ))
        };
        self.tree.at()?.ok_or_else(missing)
    }

    /// Resets it to a commit, whatever a program did to it. Ignored files stay.
    pub(crate) async fn reset(&self, commit: &str) -> Result<(), Failure> {
        // `-ff` also removes nested repositories that a program made.
        self.tree.reset_to(commit, &["-ffd".into()]).await?;
        let new_head = self.branch.as_deref().map_or(NewHead::Commit, NewHead::alone);
        self.repository.write_private(&self.tree, new_head, commit).await
    }

    /// Begins to watch the target for a session: sealing reports foreign moves from now on.
    pub(crate) async fn watch_target(
        &self,
        target: &str,
        attempt: &Attempt,
    ) -> Result<(), Failure> {
        self.repository.remember_target(&self.tree, target, attempt).await
    }

    /// Whether a file is in the commit of the last reset.
    pub(crate) async fn tracks(&self, file: &str) -> Result<bool, Failure> {
        let commit = self.at()?;
        Ok(self.repository.entry_in(&commit, file).await?.is_some())
    }

    /// Returns when its files are on stable storage; from then on it is safe after a crash.
    pub(crate) async fn settle(&self) -> Result<(), Failure> {
        self.repository.sync().await?;
        self.tree.end_use()
    }
}

impl Repository {
    async fn recreate(
        &self,
        tree: &Tree,
        branch: &str,
        wanted: &TreeRequest<'_>,
    ) -> Result<(), Failure> {
        let commits = feature_ref(&wanted.attempt.run);
        let rescue = rescue_ref(&wanted.attempt.run, wanted.attempt.slot);
        self.keep_found(tree, KeptRefs { branch, rescue: &rescue, commits: &commits }).await?;
        let commit = match self.branch_commit(branch).await? {
            Some(commit) => commit,
            None => self.revive(branch, wanted).await?,
        };
        self.ready(tree, NewHead::alone(branch), &commit).await
    }

    /// Recreates the branch: at the expected commit, or at the ref that closing the run left.
    async fn revive(&self, branch: &str, wanted: &TreeRequest<'_>) -> Result<String, Failure> {
        let _guard = self.exclusive().await;
        let names =
            wanted.commit.map(str::to_owned).into_iter().chain([feature_ref(&wanted.attempt.run)]);
        for name in names {
            if let Some(commit) = self.commit_of(&name).await? {
                self.move_ref(&branch_ref(branch), None, &commit).await?;
                return Ok(commit);
            }
        }
        let root = self.root.display();
        Err(Failure::terminal(format!(
            "the work tree of {branch} is gone, and its commits are not in {root} any more"
        )))
    }
}
