//! Bringing a work tree to a commit, whatever a check did to it.

use std::path::Path;
use std::process::Stdio;

use longhaul_engine::Failure;
use tokio::process::Command;

/// Runs git in a work tree, without hooks and without our own `GIT_…` variables. Returns its standard output.
pub(crate) async fn git(worktree: &Path, args: &[&str]) -> Result<String, Failure> {
    let mut command = Command::new("git");
    for (name, _) in std::env::vars_os() {
        if name.as_encoded_bytes().starts_with(b"GIT_") {
            command.env_remove(name);
        }
    }
    command
        .env("LC_ALL", "C")
        .env("GIT_TERMINAL_PROMPT", "0")
        .arg("-C")
        .arg(worktree)
        .args(["-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "submodule.recurse=false"])
        .args(args)
        .stdin(Stdio::null())
        .kill_on_drop(true);
    let failure = |problem: &str| {
        let command = args.join(" ");
        Failure::retryable(format!("`git {command}` failed in {}: {}", worktree.display(), problem.trim()))
    };
    let output = command.output().await.map_err(|error| failure(&error.to_string()))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(failure(&String::from_utf8_lossy(&output.stderr)))
    }
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
        self.remove_left_lock().await?;
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

    /// A git that a check started and that was killed leaves its lock. Nobody else uses the index of this work tree.
    async fn remove_left_lock(&self) -> Result<(), Failure> {
        let lock = git(self.worktree, &["rev-parse", "--git-path", "index.lock"]).await?;
        let lock = self.worktree.join(lock.trim_end_matches('\n'));
        match std::fs::remove_file(&lock) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(Failure::retryable(format!("{} cannot be removed: {error}", lock.display())))
            }
            _ => Ok(()),
        }
    }
}

async fn branch(worktree: &Path) -> Result<String, Failure> {
    Ok(git(worktree, &["rev-parse", "--symbolic-full-name", "HEAD"]).await?.trim().to_owned())
}
