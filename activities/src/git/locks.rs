//! The lock files of a repository: what a git that was killed leaves, and what stops every git after it.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use longhaul_engine::Failure;

use super::repository::common_dir;

/// A lock file that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockFile {
    /// Where.
    pub path: PathBuf,
    /// For how long; nothing if its time lies in the future.
    pub age: Option<Duration>,
    /// The work tree of its own that it belongs to; `None`: the user's checkout, or all of them.
    pub worktree: Option<PathBuf>,
}

/// The lock files of the repository that a directory is in.
pub async fn lock_files(root: &Path) -> Result<Vec<LockFile>, Failure> {
    let common = common_dir(root).await?;
    let mut found = in_folder(&common, None);
    let mut open = vec![common.join("refs")];
    while let Some(folder) = open.pop() {
        found.extend(in_folder(&folder, None));
        open.extend(entries(&folder).into_iter().filter(|path| path.is_dir()));
    }
    for admin in entries(&common.join("worktrees")) {
        let link = std::fs::read_to_string(admin.join("gitdir")).unwrap_or_default();
        let tree = Path::new(link.trim_end()).parent().map(Path::to_path_buf);
        found.extend(in_folder(&admin, tree.as_deref()));
    }
    found.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(found)
}

fn in_folder(folder: &Path, worktree: Option<&Path>) -> Vec<LockFile> {
    let locks = entries(folder).into_iter().filter(|path| path.extension().is_some_and(|end| end == "lock"));
    let lock = |path: PathBuf| {
        let written = std::fs::symlink_metadata(&path).and_then(|metadata| metadata.modified()).ok();
        let age = written.and_then(|written| SystemTime::now().duration_since(written).ok());
        LockFile { path, age, worktree: worktree.map(Path::to_path_buf) }
    };
    locks.map(lock).collect()
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}
