//! Work trees for many short calls, such as those of an agent's tools: a call that only reads
//! starts no git process and syncs nothing.

use longhaul_engine::Failure;

use super::tree::{Condition, Tree};
use super::work::{TreeRequest, WorkTree};
use crate::git::GitHandlers;
use crate::git::names::rescue_ref;
use crate::git::objects::refs::Repository;

impl GitHandlers {
    /// The tree of a feature, if it is sound and set up. It is not marked as in use: what a call
    /// writes must be on stable storage before it ends.
    pub(crate) async fn steady_tree(
        &self,
        wanted: &TreeRequest<'_>,
    ) -> Result<Option<WorkTree>, Failure> {
        let (repository, tree) = self.feature_tree(wanted).await?;
        let is_steady = tree.condition()? == Condition::Sound && tree.is_set_up(None)?;
        Ok(is_steady.then(|| WorkTree::of_feature(repository, tree, wanted.feature)))
    }

    /// Trusts a tree that was in use when Longhaul was killed. If the system has run on since, no
    /// write to it was lost, and the calls before the interrupted one have left it as they said.
    pub(crate) async fn trust_if_system_ran_on(
        &self,
        wanted: &TreeRequest<'_>,
    ) -> Result<(), Failure> {
        let (repository, tree) = self.feature_tree(wanted).await?;
        if ran_on(&tree)? {
            repository.sync().await?;
            tree.end_use()?;
        }
        Ok(())
    }

    /// Puts the tree of an interrupted call on stable storage, if it is as its programs left it;
    /// `false`: it is not.
    pub(crate) async fn settle_interrupted(
        &self,
        wanted: &TreeRequest<'_>,
    ) -> Result<bool, Failure> {
        let (repository, tree) = self.feature_tree(wanted).await?;
        if tree.condition()? != Condition::Sound && !ran_on(&tree)? {
            return Ok(false);
        }
        repository.sync().await?;
        tree.end_use()?;
        Ok(true)
    }

    /// The commit with the files that the tree had before this attempt made it again. The private
    /// repository has the object, and not the ref.
    pub(crate) async fn rescued(
        &self,
        wanted: &TreeRequest<'_>,
    ) -> Result<Option<String>, Failure> {
        let rescue = rescue_ref(&wanted.attempt.run, wanted.attempt.slot);
        let repository = self.repository(wanted.project).await?;
        repository.commit_of(&rescue).await
    }

    async fn feature_tree(&self, wanted: &TreeRequest<'_>) -> Result<(Repository, Tree), Failure> {
        let repository = self.repository(wanted.project).await?;
        let tree = repository.feature_tree(wanted.feature);
        Ok((repository, tree))
    }
}

/// Whether a tree was in use when Longhaul was killed, and the system has run on since.
fn ran_on(tree: &Tree) -> Result<bool, Failure> {
    Ok(tree.condition()? == Condition::Suspect
        && tree.was_used_since_boot()?
        && !tree.is_half_reset())
}
