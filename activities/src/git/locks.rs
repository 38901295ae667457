//! The lock files of a repository. A killed git leaves them, and they block every later git.

pub(super) mod stale;

use std::fs::DirEntry;
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
    let shared = Scope { common: &common, worktree: None, holders_in: None };
    let mut found = Scope { holders_in: Some(root), ..shared }.locks(&common);
    let mut open = vec![common.join("refs")];
    while let Some(directory) = open.pop() {
        // A ref is locked for an instant by git anywhere, so its holder is searched everywhere.
        found.extend(shared.locks(&directory));
        // `file_type` does not follow links, which could lead in a circle.
        let is_directory = |entry: &DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
        open.extend(entries(&directory).filter(is_directory).map(|entry| entry.path()));
    }
    for admin in entries(&common.join("worktrees")).map(|entry| entry.path()) {
        let link = std::fs::read_to_string(admin.join("gitdir")).unwrap_or_default();
        let tree = Path::new(link.trim_end()).parent();
        found.extend(Scope { worktree: tree, holders_in: tree, ..shared }.locks(&admin));
    }
    found.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(found)
}

/// The lock files in a directory, with `packed-refs.new`: git refuses to write it if it exists.
pub(super) fn names_in(directory: &Path) -> impl Iterator<Item = PathBuf> {
    let is_lock = |path: &PathBuf| {
        path.extension().is_some_and(|end| end == "lock") || path.ends_with("packed-refs.new")
    };
    entries(directory).map(|entry| entry.path()).filter(is_lock)
}

/// What a directory of lock files belongs to.
#[derive(Clone, Copy)]
struct Scope<'a> {
    /// The directory of the repository.
    common: &'a Path,
    /// The work tree; `None`: the user's checkout, or all of them.
    worktree: Option<&'a Path>,
    /// The directory in which a git that holds a lock runs; `None`: anywhere.
    holders_in: Option<&'a Path>,
}

impl Scope<'_> {
    fn locks(self, directory: &Path) -> Vec<LockFile> {
        let lock = |path: PathBuf| {
            let written =
                std::fs::symlink_metadata(&path).and_then(|metadata| metadata.modified()).ok();
            let is_own_ref = ["refs/longhaul", "refs/heads/longhaul"]
                .iter()
                .any(|own| path.starts_with(self.common.join(own)));
            LockFile {
                age: written.and_then(|written| SystemTime::now().duration_since(written).ok()),
                worktree: self.worktree.map(Path::to_path_buf),
                is_own_ref,
                holder: holder_of(&path, self.holders_in),
                path,
            }
        };
        names_in(directory).map(lock).collect()
    }
}

fn entries(directory: &Path) -> impl Iterator<Item = DirEntry> {
    std::fs::read_dir(directory).into_iter().flatten().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::command::Git;

    #[tokio::test]
    async fn a_link_in_a_circle_is_not_followed() {
        let root = tempfile::tempdir().unwrap();
        Git::at(root.path()).args(["init", "--quiet"]).run().await.unwrap();
        let refs = root.path().join(".git/refs");
        std::os::unix::fs::symlink(&refs, refs.join("heads/circle")).unwrap();
        std::fs::create_dir(refs.join("heads/longhaul")).unwrap();
        for name in ["heads/main.lock", "heads/longhaul/login.lock"] {
            std::fs::write(refs.join(name), "").unwrap();
        }
        let found = lock_files(root.path()).await.unwrap();
        let found: Vec<_> = found
            .iter()
            .map(|lock| (lock.path.strip_prefix(&refs).unwrap(), lock.is_own_ref))
            .collect();
        let expected = [("heads/longhaul/login.lock", true), ("heads/main.lock", false)];
        assert_eq!(found, expected.map(|(path, is_own)| (Path::new(path), is_own)));
    }
}
