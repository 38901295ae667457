//! The git directories of a work tree, read without git, which would follow configuration in the
//! tree.

use std::path::{Path, PathBuf};

use crate::files::placed::{self, Links};

/// The longest `.git` file, in bytes.
const LONGEST: u64 = 8 * 1024;

/// The git directories of a work tree, with links resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct GitDirs {
    /// The directory of this work tree.
    pub(super) own: PathBuf,
    /// The directory of the repository; the same for the main work tree.
    pub(super) common: PathBuf,
}

impl GitDirs {
    pub(super) fn of(tree: &Path) -> Option<Self> {
        let git = tree.join(".git");
        let own = if git.symlink_metadata().ok()?.is_dir() {
            git
        } else {
            let text = placed::read_text(&git, Links::Refused, LONGEST).ok()??;
            tree.join(text.trim_end().strip_prefix("gitdir: ")?)
        };
        let own = own.canonicalize().ok()?;
        let common =
            match placed::read_text(&own.join("commondir"), Links::Refused, LONGEST).ok()? {
                Some(text) => own.join(text.trim_end()).canonicalize().ok()?,
                None => own.clone(),
            };
        Some(Self { own, common })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_directories_of_trees_are_found() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().canonicalize().unwrap();
        for dir in ["main/.git/worktrees/one", "one", "none"] {
            std::fs::create_dir_all(place.join(dir)).unwrap();
        }
        std::fs::write(
            place.join("one/.git"),
            format!("gitdir: {}\n", place.join("main/.git/worktrees/one").display()),
        )
        .unwrap();
        std::fs::write(place.join("main/.git/worktrees/one/commondir"), "../..\n").unwrap();
        let common = place.join("main/.git");
        let main = GitDirs { own: common.clone(), common: common.clone() };
        assert_eq!(GitDirs::of(&place.join("main")), Some(main));
        let one = GitDirs { own: common.join("worktrees/one"), common };
        assert_eq!(GitDirs::of(&place.join("one")), Some(one));
        assert_eq!(GitDirs::of(&place.join("none")), None);
    }
}
