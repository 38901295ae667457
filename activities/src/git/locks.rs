//! The lock files of a repository. A killed git leaves them, and they block every later git.

pub(super) mod stale;

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use longhaul_engine::Failure;

use super::command::directories::common_dir;
use crate::process::{Holder, holder_of};

/// A lock file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockFile {
    /// Its path.
    pub path: PathBuf,
    /// Its age; `None` if its time lies in the future.
    pub age: Option<Duration>,
    /// The work tree that it belongs to; `None`: the user's checkout, or all of them.
    pub worktree: Option<PathBuf>,
    /// Whether it guards a ref that only Longhaul and its agents write.
    pub is_own_ref: bool,
    /// Its holder.
    pub holder: Holder,
}

/// The lock files of the repository of a directory.
pub async fn lock_files(root: &Path) -> Result<Vec<LockFile>, Failure> {
    let common = common_dir(root).await?;
    let mut found = in_folder(&common, None, Some(root));
    let mut open = vec![common.join("refs")];
    while let Some(folder) = open.pop() {
        found.extend(in_folder(&folder, None, None));
        open.extend(entries(&folder).into_iter().filter(|path| path.is_dir()));
    }
    let own = ["refs/longhaul", "refs/heads/longhaul"].map(|folder| common.join(folder));
    for lock in &mut found {
        lock.is_own_ref = own.iter().any(|folder| lock.path.starts_with(folder));
    }
    for admin in entries(&common.join("worktrees")) {
        let link = std::fs::read_to_string(admin.join("gitdir")).unwrap_or_default();
        let tree = Path::new(link.trim_end()).parent().map(Path::to_path_buf);
        found.extend(in_folder(&admin, tree.as_deref(), tree.as_deref()));
    }
    found.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(found)
}

/// The lock files in a directory, with `packed-refs.new`: git refuses to write it if it exists.
pub(super) fn names_in(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let is_lock = |path: &PathBuf| {
        path.extension().is_some_and(|end| end == "lock") || path.ends_with("packed-refs.new")
    };
    entries(folder).into_iter().filter(is_lock)
}

fn in_folder(folder: &Path, worktree: Option<&Path>, place: Option<&Path>) -> Vec<LockFile> {
    let lock = |path: PathBuf| {
        let written =
            std::fs::symlink_metadata(&path).and_then(|metadata| metadata.modified()).ok();
        let age = written.and_then(|written| SystemTime::now().duration_since(written).ok());
        let holder = holder_of(&path, place);
        LockFile { path, age, worktree: worktree.map(Path::to_path_buf), is_own_ref: false, holder }
    };
    names_in(folder).map(lock).collect()
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}
