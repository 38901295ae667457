//! Work trees that are not there any more, or not here: a log that was carried elsewhere, or that goes on from a backup, names
//! those of another data directory, or some that were closed since. They are made again from what git has kept.

use std::path::{Path, PathBuf};

use longhaul_engine::{Failure, RunId};
use longhaul_workflows::backlog::FeatureId;
use longhaul_workflows::contracts::ProjectRef;

use super::GitHandlers;
use super::names::{branch, feature_ref, head_ref, integration_of};
use super::open::shown;
use super::refs::Repository;
use super::worktree::{Stand, Tree};

/// Whose work tree is wanted.
#[derive(Debug)]
pub(crate) struct Wanted<'a> {
    pub(crate) project: &'a ProjectRef,
    pub(crate) feature: &'a FeatureId,
    /// Its path, as the log has it.
    pub(crate) worktree: &'a str,
    /// The commit that it is wanted for, if that is known.
    pub(crate) commit: Option<&'a str>,
    pub(crate) run: &'a RunId,
}

impl GitHandlers {
    /// The path of a work tree that is there; it is made again if it is not.
    pub(crate) async fn work_tree(&self, wanted: &Wanted<'_>) -> Result<String, Failure> {
        let Some((repository, path)) = self.own_tree(wanted.project, wanted.worktree).await? else {
            return Ok(wanted.worktree.to_owned());
        };
        // One that is only broken is for its user to complain of: what is in it must not be lost here.
        if !path.exists() || repository.unfinished_tree(&path)?.is_some() {
            tracing::warn!(tree = %path.display(), "making a work tree again that is gone");
            repository.make_again(&path, wanted).await?;
        }
        Ok(shown(&path))
    }

    /// Whether the project's set-up has run in a work tree since that was made; so it has in what is none of ours.
    pub(crate) async fn is_set_up(&self, project: &ProjectRef, worktree: &str) -> Result<bool, Failure> {
        Ok(self.tree_at(project, worktree).await?.is_none_or(|tree| tree.is_set_up()))
    }

    /// To be called before the project's set-up is run in a work tree.
    pub(crate) async fn begin_setup(&self, project: &ProjectRef, worktree: &str) -> Result<(), Failure> {
        match self.tree_at(project, worktree).await? {
            Some(tree) => tree.begin_setup().await,
            None => Ok(()),
        }
    }

    /// Says that a set-up came to its end in a work tree, and whether that is set up now.
    pub(crate) async fn end_setup(&self, project: &ProjectRef, worktree: &str, is_set_up: bool) -> Result<(), Failure> {
        self.tree_at(project, worktree).await?.map_or(Ok(()), |tree| tree.end_setup(is_set_up))
    }

    async fn tree_at(&self, project: &ProjectRef, worktree: &str) -> Result<Option<Tree>, Failure> {
        let Some((repository, path)) = self.own_tree(project, worktree).await? else { return Ok(None) };
        Ok(repository.admin_of(&path)?.map(|admin| Tree { path, admin }))
    }

    /// Where a work tree of ours is in this data directory; `None` if it is none of ours.
    async fn own_tree(&self, project: &ProjectRef, worktree: &str) -> Result<Option<(Repository, PathBuf)>, Failure> {
        let given = Path::new(worktree);
        if !is_of(given, &project.id) {
            return Ok(None);
        }
        let repository = self.repository(project).await?;
        let path = repository.own_path(given, &project.id)?;
        Ok(Some((repository, path)))
    }
}

impl Repository {
    async fn make_again(&self, path: &Path, wanted: &Wanted<'_>) -> Result<(), Failure> {
        if let Some(tree) = integration_of(path) {
            return match wanted.commit {
                Some(commit) => self.integration_at(commit, tree).await.map(drop),
                None => Err(Failure::terminal(format!("{} is gone", path.display()))),
            };
        }
        let _held = self.exclusive().await;
        let branch = branch(wanted.feature);
        let commit = match self.branch_commit(&branch).await? {
            Some(commit) => commit,
            None => self.revive(&branch, wanted).await?,
        };
        let tree = match self.unfinished_tree(path)? {
            Some(tree) => tree,
            None => self.add_tree(path, Stand::Branch(&branch)).await?,
        };
        tree.reset_to(&commit).await
    }

    /// A work tree that somebody died in the middle of making.
    fn unfinished_tree(&self, path: &Path) -> Result<Option<Tree>, Failure> {
        let tree = self.admin_of(path)?.map(|admin| Tree { path: path.to_owned(), admin });
        Ok(tree.filter(Tree::is_unfinished))
    }

    /// Makes the branch again: at the commit that is wanted, or where the run left it when it was closed.
    async fn revive(&self, branch: &str, wanted: &Wanted<'_>) -> Result<String, Failure> {
        let names = wanted.commit.map(str::to_owned).into_iter().chain([feature_ref(wanted.run)]);
        for name in names {
            if let Some(commit) = self.commit_of(&name).await? {
                self.move_ref(&head_ref(branch), None, &commit).await?;
                return Ok(commit);
            }
        }
        let root = self.root.display();
        Err(Failure::terminal(format!("the work tree of {branch} is gone, and its commits are not in {root} any more")))
    }
}

/// Whether a path is that of a work tree of a project, in whatever data directory.
pub(super) fn is_of(path: &Path, project: &str) -> bool {
    let parents: Vec<PathBuf> = path.ancestors().skip(1).take(2).map(Path::to_owned).collect();
    let named =
        |at: usize, name: &str| parents.get(at).and_then(|parent| parent.file_name()).is_some_and(|is| is == name);
    named(0, project) && named(1, "worktrees")
}
