//! Creates a repository, and commits single files of the user's checkout, for `longhaul init`.

use std::path::{Path, PathBuf};

use longhaul_engine::Failure;

use crate::git::command::Git;

/// Creates a repository in a directory. `false`: the directory already is the top of one; a
/// terminal failure if it lies inside one.
pub async fn make_repository(dir: &Path) -> Result<bool, Failure> {
    let shown = dir.display();
    let is = |what: &'static str| async move {
        let output = Git::at(dir).args(["rev-parse", what]).finish().await?;
        Ok::<_, Failure>(output.code() == Some(0) && output.text().trim() == "true")
    };
    if is("--is-bare-repository").await? {
        return Err(Failure::terminal(format!(
            "{shown} is in a bare repository; use a checkout of it"
        )));
    }
    if is("--is-inside-git-dir").await? {
        return Err(Failure::terminal(format!(
            "{shown} is inside of a .git directory; use the checkout"
        )));
    }
    if is("--is-inside-work-tree").await? {
        let top = PathBuf::from(Git::at(dir).args(["rev-parse", "--show-toplevel"]).text().await?);
        if top == dir {
            return Ok(false);
        }
        let top = top.display();
        return Err(Failure::terminal(format!(
            "{shown} is inside of the repository {top}, and a project is a whole repository: name \
             {top}, or make {shown} one of its own with `git init`"
        )));
    }
    Git::at(dir).args(["init", "--quiet", "--initial-branch=main"]).run().await?;
    Ok(true)
}

/// Commits these files, without other changed or staged files.
pub async fn commit_files(root: &Path, files: &[&str], subject: &str) -> Result<(), Failure> {
    Git::at(root).args(["add", "--"]).args(files).run().await?;
    let mut commit = Git::at(root);
    for (key, fallback) in [("user.name", "Longhaul"), ("user.email", "longhaul@localhost")] {
        if Git::at(root).args(["config", "--get", key]).find().await?.is_none() {
            commit = commit.setting(format!("{key}={fallback}"));
        }
    }
    commit
        .args(["commit", "--quiet", "--no-verify", "-m", subject, "--"])
        .args(files)
        .run()
        .await?;
    Ok(())
}

/// Whether a checkout has a commit.
pub async fn has_commit(dir: &Path) -> Result<bool, Failure> {
    let head =
        Git::at(dir).args(["rev-parse", "--verify", "--quiet", "HEAD^{commit}"]).find().await?;
    Ok(head.is_some())
}
