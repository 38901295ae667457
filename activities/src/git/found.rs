//! Making a repository, and committing single files of the user's checkout, for `longhaul init`.

use std::path::Path;

use longhaul_engine::Failure;

use super::command::Git;

/// Makes a repository of a directory that is in none. `false`: it is in one already.
pub async fn make_repository(dir: &Path) -> Result<bool, Failure> {
    if Git::at(dir).args(["rev-parse", "--is-inside-work-tree"]).finish().await?.code() == Some(0) {
        return Ok(false);
    }
    Git::at(dir).args(["init", "--quiet", "--initial-branch=main"]).run().await?;
    Ok(true)
}

/// Commits these files, and nothing else that may be changed or staged.
pub async fn commit_files(root: &Path, files: &[&str], subject: &str) -> Result<(), Failure> {
    Git::at(root).args(["add", "--"]).args(files).run().await?;
    let mut commit = Git::at(root);
    for (key, fallback) in [("user.name", "Longhaul"), ("user.email", "longhaul@localhost")] {
        if Git::at(root).args(["config", "--get", key]).find().await?.is_none() {
            commit = commit.setting(format!("{key}={fallback}"));
        }
    }
    commit.args(["commit", "--quiet", "--no-verify", "-m", subject, "--"]).args(files).run().await?;
    Ok(())
}

/// Whether a checkout has a commit.
pub async fn has_commit(dir: &Path) -> Result<bool, Failure> {
    let head = Git::at(dir).args(["rev-parse", "--verify", "--quiet", "HEAD^{commit}"]).find().await?;
    Ok(head.is_some())
}
