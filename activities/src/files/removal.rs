//! Removes trees of any depth, whatever rights their directories have.
//!
//! A program can nest directories deeper than a stack, the descriptors of a process or the longest
//! path allow. So a directory within another one is moved up to the top before its entries are
//! removed: a few open directories are enough.

use std::ffi::{CStr, CString};
use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use nix::sys::stat::{FchmodatFlags, Mode as Rights, fchmodat};
use rustix::fs::{AtFlags, CWD, Dir, Mode, OFlags, openat, renameat, statat, unlinkat};
use rustix::io::Errno;

use super::placed::is_absent;

/// How often a directory is read again in which nothing was moved: some file systems skip entries
/// while others are removed.
const ATTEMPTS: u32 = 3;

/// Removes a file or a directory tree; succeeds if nothing exists. Links are not followed.
pub fn remove_all(path: &Path) -> io::Result<()> {
    let removed = match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => remove_tree(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    removed.or_else(|error| if is_absent(&error) { Ok(()) } else { Err(error) })
}

fn remove_tree(path: &Path) -> io::Result<()> {
    let opened = open(CWD, &CString::new(path.as_os_str().as_encoded_bytes())?)?;
    let mut top = Top { opened, moved: 0 };
    let mut attempts = ATTEMPTS;
    while attempts > 0 {
        let before = top.moved;
        if !top.remove_entries()? {
            break;
        }
        if top.moved == before {
            attempts -= 1;
        }
    }
    fs::remove_dir(path)
}

/// The directory to remove.
struct Top {
    opened: OwnedFd,
    /// How many directories were moved up into it.
    moved: u64,
}

impl Top {
    /// Removes all entries once. Returns whether there were any; call it again until none is left,
    /// because deep directories are moved up.
    fn remove_entries(&mut self) -> io::Result<bool> {
        let mut has_entries = false;
        let top = self.opened.try_clone()?;
        for entry in entries(&top)? {
            let name = entry?;
            has_entries = true;
            if remove(&top, &name)? {
                continue;
            }
            let directory = match open(&top, &name) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                opened => opened?,
            };
            for entry in entries(&directory)? {
                let inner = entry?;
                if !remove(&directory, &inner)? {
                    self.move_up(&directory, &inner)?;
                }
            }
            drop(directory);
            // An entry that was skipped is found the next time.
            remove(&top, &name)?;
        }
        Ok(has_entries)
    }

    fn move_up(&mut self, from: &OwnedFd, name: &CStr) -> io::Result<()> {
        // A move changes the directory's own entry `..`.
        give_rights(from, name);
        loop {
            self.moved += 1;
            let free = format!(".longhaul-removed-{}", self.moved);
            match renameat(from, name, &self.opened, free) {
                // The name is taken by a file or by a directory with entries.
                Err(Errno::NOTDIR | Errno::NOTEMPTY | Errno::EXIST) => {}
                outcome => return gone_is_fine(outcome),
            }
        }
    }
}

/// Removes a file or an empty directory. Returns `false` for a directory with entries.
fn remove(directory: &OwnedFd, name: &CStr) -> io::Result<bool> {
    let outcome = match unlinkat(directory, name, AtFlags::empty()) {
        // The kinds of answers for a directory differ between systems.
        Err(Errno::ISDIR | Errno::PERM | Errno::ACCESS) => {
            match unlinkat(directory, name, AtFlags::REMOVEDIR) {
                Err(Errno::NOTEMPTY | Errno::EXIST) => return Ok(false),
                Err(Errno::NOTDIR) => unlinkat(directory, name, AtFlags::empty()),
                outcome => outcome,
            }
        }
        outcome => outcome,
    };
    gone_is_fine(outcome).map(|()| true)
}

fn gone_is_fine(outcome: Result<(), Errno>) -> io::Result<()> {
    match outcome {
        Err(Errno::NOENT) => Ok(()),
        outcome => Ok(outcome?),
    }
}

/// Opens a directory whose entries can be removed.
fn open(at: impl AsFd, name: &CStr) -> io::Result<OwnedFd> {
    give_rights(&at, name);
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::RDONLY;
    Ok(openat(at, name, flags, Mode::empty())?)
}

/// Gives the owner of a directory all rights to it. A failure shows when a right is needed.
fn give_rights(at: impl AsFd, name: &CStr) {
    let Ok(found) = statat(&at, name, AtFlags::SYMLINK_NOFOLLOW) else { return };
    let mode = Mode::from_raw_mode(found.st_mode);
    if !mode.contains(Mode::RWXU) {
        let rights = Rights::from_bits_truncate((mode | Mode::RWXU).bits());
        let _ = fchmodat(at, name, rights, FchmodatFlags::NoFollowSymlink);
    }
}

/// The names in a directory, except `.` and `..`.
fn entries(directory: &OwnedFd) -> io::Result<impl Iterator<Item = io::Result<CString>>> {
    let read = Dir::read_from(directory)?;
    let names = read.map(|entry| Ok(entry?.file_name().to_owned()));
    let is_own = |name: &CString| [c".", c".."].contains(&name.as_c_str());
    Ok(names.filter(move |name| !name.as_ref().is_ok_and(is_own)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trees_are_removed_whatever_their_rights_are() {
        use std::os::unix::fs::PermissionsExt as _;

        let dir = tempfile::tempdir().unwrap();
        let tree = dir.path().join("tree");
        for mode in [0o000, 0o555, 0o700] {
            fs::create_dir_all(tree.join("cache/within")).unwrap();
            fs::write(tree.join("cache/file"), "").unwrap();
            // A name that is given to directories on their way.
            fs::write(tree.join(".longhaul-removed-1"), "").unwrap();
            fs::create_dir_all(tree.join(".longhaul-removed-2/full/of/entries")).unwrap();
            for closed in ["cache/within", "cache", ""] {
                let rights = fs::Permissions::from_mode(mode);
                fs::set_permissions(tree.join(closed), rights).unwrap();
            }
            remove_all(&tree).unwrap();
            assert!(!tree.exists());
            remove_all(&tree).unwrap();
        }
    }

    #[test]
    fn trees_of_any_depth_are_removed() {
        use rustix::fs::{Mode, OFlags, mkdirat, openat};

        // In memory, if there is such a place: many disks take long for this.
        let memory = Path::new("/dev/shm");
        let place = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        let dir = tempfile::tempdir_in(place).unwrap();
        let tree = dir.path().join("tree");
        let outside = dir.path().join("outside");
        fs::create_dir_all(&outside).unwrap();
        fs::write(outside.join("file"), "").unwrap();
        fs::create_dir(&tree).unwrap();
        let mut deepest = std::os::fd::OwnedFd::from(fs::File::open(&tree).unwrap());
        for _ in 0..10_000 {
            mkdirat(&deepest, "d", Mode::RWXU).unwrap();
            rustix::fs::symlinkat(&outside, &deepest, "link").unwrap();
            deepest = openat(&deepest, "d", OFlags::DIRECTORY, Mode::empty()).unwrap();
        }
        for closed in ["closed", "unreadable"] {
            mkdirat(&deepest, closed, Mode::RWXU).unwrap();
            mkdirat(&deepest, format!("{closed}/within"), Mode::RWXU).unwrap();
            let mode = Mode::from_raw_mode(if closed == "closed" { 0o555 } else { 0 });
            rustix::fs::chmodat(&deepest, closed, mode, rustix::fs::AtFlags::empty()).unwrap();
        }
        drop(deepest);
        remove_all(&tree).unwrap();
        assert!(!tree.exists());
        assert!(outside.join("file").exists(), "a link is not followed");
    }
}
