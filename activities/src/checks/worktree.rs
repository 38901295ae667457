//! Bringing a work tree to a commit, whatever a check did to it.

use std::path::Path;

use longhaul_engine::Failure;

use crate::git::{Git, clear_left};
use crate::machine;

/// What git prints in a work tree. A check may have left anything there, so no failure is for good.
pub(crate) async fn git(worktree: &Path, args: &[&str]) -> Result<String, Failure> {
    Git::at(worktree).args(args).text().await.map_err(machine::worth_another_try)
}

/// Where a work tree stands before checks are run in it, and shall stand after.
#[derive(Debug)]
pub(super) struct Place<'a> {
    worktree: &'a Path,
    commit: &'a str,
    /// The branch that is checked out, as `refs/heads/…`; `HEAD` if none is.
    branch: String,
}

impl<'a> Place<'a> {
    pub(super) async fn of(worktree: &'a str, commit: &'a str) -> Result<Self, Failure> {
        let worktree = Path::new(worktree);
        Ok(Self { worktree, commit, branch: branch(worktree).await? })
    }

    /// Tracked files are as in the commit, other files are gone, ignored ones stay.
    pub(super) async fn reset(&self) -> Result<(), Failure> {
        // Left by a git that a check started, or by one of ours: what killed us can have killed it.
        clear_left(self.worktree).await?;
        // A check may have switched to another branch: that one must not be moved.
        if branch(self.worktree).await? != self.branch {
            if self.branch == "HEAD" {
                git(self.worktree, &["checkout", "--quiet", "--force", "--detach"]).await?;
            } else {
                git(self.worktree, &["symbolic-ref", "HEAD", &self.branch]).await?;
            }
        }
        git(self.worktree, &["reset", "--quiet", "--hard", self.commit, "--"]).await?;
        // Twice forced: a repository that a check made goes too.
        git(self.worktree, &["clean", "--quiet", "-ffd"]).await.map(drop)
    }
}

async fn branch(worktree: &Path) -> Result<String, Failure> {
    git(worktree, &["rev-parse", "--symbolic-full-name", "HEAD"]).await
}
