//! Files whose owner has no rights to them. Programs leave read-only directories behind, as Go does
//! in its module cache, and only the superuser can replace their entries.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// The mode bits that the owner needs: for a directory, a writable file, a readable file.
const OF_DIRECTORY: u32 = 0o700;
const OF_FILE: u32 = 0o600;
const OF_READ_FILE: u32 = 0o400;

/// Lets the owner read, write and enter everything below a directory. Returns whether a right was
/// missing and could be given.
pub(crate) fn give_access(top: &Path) -> bool {
    give(top, OF_FILE)
}

/// Lets the owner read everything below a directory, and change its directories. Returns whether a
/// right was missing and could be given.
pub(crate) fn give_reading(top: &Path) -> bool {
    give(top, OF_READ_FILE)
}

fn give(top: &Path, of_file: u32) -> bool {
    let mut is_changed = false;
    let mut paths = vec![top.to_owned()];
    while let Some(path) = paths.pop() {
        let Ok(found) = fs::symlink_metadata(&path) else { continue };
        let needed = match found.file_type() {
            kind if kind.is_dir() => OF_DIRECTORY,
            kind if kind.is_file() => of_file,
            _ => continue,
        };
        let mode = found.permissions().mode();
        is_changed |= mode & needed != needed
            && fs::set_permissions(&path, Permissions::from_mode(mode | needed)).is_ok();
        if found.is_dir() {
            let entries = fs::read_dir(&path).into_iter().flatten().flatten();
            paths.extend(entries.map(|entry| entry.path()));
        }
    }
    is_changed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_get_their_rights_back_and_others_get_none() {
        let dir = tempfile::tempdir().unwrap();
        let tree = dir.path().join("tree");
        let outside = dir.path().join("outside");
        fs::create_dir_all(tree.join("cache")).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let set = |path: &Path, mode| {
            fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        };
        for file in [&tree.join("cache/file"), &outside] {
            fs::write(file, "").unwrap();
            set(file, 0o444);
        }
        std::os::unix::fs::symlink(&outside, tree.join("link")).unwrap();
        set(&tree.join("cache"), 0o555);
        assert!(give_access(&tree));
        assert_eq!(mode(&tree.join("cache")), 0o755);
        assert_eq!(mode(&tree.join("cache/file")), 0o644);
        assert_eq!(mode(&outside), 0o444, "a link is not followed");
        assert!(!give_access(&tree), "no right is missing");
        set(&tree.join("cache/file"), 0o444);
        assert!(!give_reading(&tree), "it can be read");
        set(&tree.join("cache/file"), 0o044);
        set(&tree.join("cache"), 0o000);
        assert!(give_reading(&tree));
        assert_eq!(mode(&tree.join("cache/file")), 0o444);
    }
}
