//! Gates trees between two features. They are emptied and kept, because a tree is mostly the same
//! for all features of a project, and writing a few changes is cheaper than writing all files.
//!
//! No agent works in a gates tree, so nothing of one can reach the next feature.

use longhaul_engine::Failure;

use super::tree::{Condition, Tree};
use crate::git::files;
use crate::git::objects::refs::Repository;

/// The prefix of their names. Not valid in a feature id.
const SPARE: &str = ".spare-";

/// The number of spare trees of a project.
const MOST: usize = 4;

impl Repository {
    /// Keeps the gates tree of a closed feature for another one, or removes it. The caller holds
    /// the repository lock.
    pub(in crate::git) async fn retire(&self, tree: &Tree) -> Result<(), Failure> {
        let mut places = (0..MOST).map(|number| self.tree(&format!("{SPARE}{number}")));
        let free = places.find(|spare| !spare.condition().is_ok_and(|it| it == Condition::Sound));
        match free {
            Some(spare)
                if tree.is_in_use()? && tree.is_presentable() && tree.empty().await.is_ok() =>
            {
                files::remove(&tree.private_dir())?;
                spare.remove()?;
                tree.rename_to(&spare)
            }
            _ => tree.remove(),
        }
    }

    /// Moves a spare tree to the place of a missing gates tree, if there is one.
    pub(in crate::git) async fn take_spare(&self, tree: &Tree) -> Result<(), Failure> {
        if tree.condition()? != Condition::Missing {
            return Ok(());
        }
        let _guard = self.exclusive().await;
        for spare in self.spares() {
            if spare.condition()? == Condition::Sound {
                tree.remove()?;
                return spare.rename_to(tree);
            }
        }
        Ok(())
    }

    /// Removes all spare trees. No work is active.
    pub(in crate::git) fn remove_spares(&self) -> Result<(), Failure> {
        self.spares().iter().try_for_each(Tree::remove)
    }

    fn spares(&self) -> Vec<Tree> {
        self.trees().into_iter().filter(|tree| tree.name().starts_with(SPARE)).collect()
    }
}
