//! The index of a checkout. Most git commands do not verify its checksum, and show a shortened one
//! as changes.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use longhaul_engine::Failure;

use super::super::command::Git;
use super::super::command::directories::git_dir;
use super::super::files;
use super::{entries, rewrite};

/// Git's messages about an index that it has read and cannot use.
const INDEX_ERRORS: [&str; 3] = ["index file", "in the index,", "entries in index"];

/// The index of a checkout, if it is damaged.
pub(in super::super) async fn damaged_index(checkout: &Path) -> Result<Option<PathBuf>, Failure> {
    find(checkout, &git_dir(checkout).await?).await
}

/// The index in a checkout's git directory, if it is damaged.
///
/// `git fsck` verifies the checksum, but also reads every object and the index of every work tree.
/// So it runs in an empty repository that borrows this one index.
pub(super) async fn find(checkout: &Path, admin: &Path) -> Result<Option<PathBuf>, Failure> {
    let index = admin.join("index");
    if !index.is_file() {
        return Ok(is_needed(checkout).await?.then_some(index));
    }
    let format = Git::at(checkout).args(["rev-parse", "--show-object-format"]).finish().await?;
    if format.code() != Some(0) {
        return Ok(None);
    }
    let empty = tempfile::tempdir()
        .map_err(|error| files::failed("write", &std::env::temp_dir(), &error))?;
    let format = format!("--object-format={}", format.text());
    Git::at(empty.path()).args(["init", "--bare", "--quiet", "--template=", &format]).run().await?;
    let is_part = |path: &PathBuf| {
        let name =
            path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        name == "index" || name.starts_with("sharedindex.")
    };
    for part in entries(admin).filter(is_part) {
        let link = empty.path().join(part.file_name().unwrap_or_default());
        symlink(&part, &link).map_err(|error| files::failed("write", &link, &error))?;
    }
    // By `GIT_DIR`: a user may forbid git to discover bare repositories.
    let fsck = Git::at(empty.path()).args(["fsck", "--connectivity-only", "--no-dangling"]);
    let checked = fsck.env("GIT_DIR", empty.path()).finish().await?;
    let output = checked.error_text();
    let is_damaged =
        checked.code() != Some(0) && INDEX_ERRORS.iter().any(|message| output.contains(message));
    if is_damaged && checked.machine_cause().is_some() {
        return Err(checked.failure());
    }
    Ok(is_damaged.then_some(index))
}

/// Whether HEAD has files: without an index, git takes all of them as deleted.
async fn is_needed(checkout: &Path) -> Result<bool, Failure> {
    let listed = Git::at(checkout).args(["ls-tree", "--name-only", "HEAD"]).finish().await?;
    Ok(listed.code() == Some(0) && !listed.stdout.is_empty())
}

/// Moves an index aside, if there is one, and creates a new one from HEAD.
pub(super) async fn recreate(checkout: &Path, index: &Path) -> Result<(), Failure> {
    let aside = files::first_free(|number| index.with_file_name(format!("index.damaged-{number}")));
    rewrite(index, &aside, Git::at(checkout).args(["read-tree", "HEAD"])).await?;
    Git::at(checkout).args(["update-index", "-q", "--refresh"]).finish().await.map(drop)
}
