//! The git directories of a checkout, as git names them.

use std::path::{Path, PathBuf};

use longhaul_engine::Failure;

use super::Git;
use crate::git::files;

/// The common git directory of all checkouts.
pub(in crate::git) async fn common_dir(dir: &Path) -> Result<PathBuf, Failure> {
    let usual = dir.join(".git");
    let is_directory = std::fs::symlink_metadata(&usual).is_ok_and(|found| found.is_dir());
    let is_whole =
        || ["HEAD", "config", "objects", "refs"].iter().all(|it| usual.join(it).exists());
    if is_directory && is_whole() && !usual.join("commondir").exists() {
        return files::canonical(&usual);
    }
    let text = Git::at(dir)
        .args(["rev-parse", "--path-format=absolute", "--git-common-dir"])
        .text()
        .await?;
    files::canonical(Path::new(&text))
}

/// The git directory of this one checkout.
pub(in crate::git) async fn git_dir(checkout: &Path) -> Result<PathBuf, Failure> {
    let usual = checkout.join(".git");
    if std::fs::symlink_metadata(&usual).is_ok_and(|metadata| metadata.is_dir())
        && usual.join("HEAD").is_file()
    {
        return files::canonical(&usual);
    }
    Ok(PathBuf::from(Git::at(checkout).args(["rev-parse", "--absolute-git-dir"]).text().await?))
}
