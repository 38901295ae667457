//! Replaces a file that a user may edit at the same moment. No edit is lost where the file system
//! can exchange files.
//!
//! A rename cannot be made conditional: it would remove an edit that was put in place between the
//! check and the rename. So the new file is *exchanged* with the old one. If the file that comes
//! out is not the one that was read, it is an edit and goes back.

use std::fs::{self, File, Metadata, Permissions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{FileExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;
use tempfile::NamedTempFile;

use super::TEMP_PREFIX;
use super::placed::{self, LONGEST, Links};

/// A completed replacement.
#[derive(Debug)]
pub struct Replacement {
    /// The new file.
    pub written: Metadata,
    /// The replaced file.
    pub(crate) before: ReplacedFile,
}

/// A replaced file. A program that had opened it before can still write to it.
#[derive(Debug)]
pub(crate) struct ReplacedFile {
    file: File,
    digest: blake3::Hash,
    /// Its change time when it was last read, if no later change can have the same time.
    settled: Option<SystemTime>,
}

/// The age of a change time that no later change can have: file systems count time in ticks.
const SETTLED: Duration = Duration::from_secs(2);

impl ReplacedFile {
    fn new(file: File, content: &[u8]) -> Self {
        Self { file, digest: blake3::hash(content), settled: None }
    }

    /// The new content, if a program has written to the file since.
    pub(crate) fn written_since(&mut self) -> io::Result<Option<Vec<u8>>> {
        let found = self.file.metadata()?;
        let changed = change_time(&found);
        if found.len() > LONGEST || (changed.is_some() && self.settled == changed) {
            return Ok(None);
        }
        let mut now = vec![0; usize::try_from(found.len()).unwrap_or_default()];
        self.file.read_exact_at(&mut now, 0)?;
        if blake3::hash(&now) != self.digest {
            return Ok(Some(now));
        }
        self.settled = changed.filter(|at| at.elapsed().is_ok_and(|passed| passed > SETTLED));
        Ok(None)
    }
}

fn change_time(found: &Metadata) -> Option<SystemTime> {
    let seconds = u64::try_from(found.ctime()).ok()?;
    let nanoseconds = u32::try_from(found.ctime_nsec()).ok()?;
    SystemTime::UNIX_EPOCH.checked_add(Duration::new(seconds, nanoseconds))
}

/// The moments at which tests edit the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Moment {
    Checked,
    Exchanged,
}

/// Replaces the regular file at a path, whose content was read as `read`. The new file is on disk
/// first. `None`: the file has changed, and stays as it is.
///
/// Where the file system cannot exchange files, the check is made right before a rename.
pub fn swap(path: &Path, read: &[u8], new: &[u8]) -> io::Result<Option<Replacement>> {
    swap_with(path, read, new, |_| ())
}

fn swap_with(
    path: &Path,
    read: &[u8],
    new: &[u8],
    mut at: impl FnMut(Moment),
) -> io::Result<Option<Replacement>> {
    let Some((mut now, _)) = open(path)? else { return Ok(None) };
    let mut beside = beside(path, new, now.metadata()?.permissions())?;
    let written = beside.as_file().metadata()?;
    if content_of(&mut now)? != read {
        return Ok(None);
    }
    at(Moment::Checked);
    match exchange(beside.path(), path) {
        Ok(()) => {}
        // The user has removed or moved the file.
        Err(Errno::NOENT) => return Ok(None),
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
            let before = ReplacedFile::new(now, read);
            beside.persist(path)?;
            return Ok(Some(Replacement { written, before }));
        }
        Err(error) => return Err(error.into()),
    }
    at(Moment::Exchanged);
    let replaced = open(beside.path())?.and_then(|(mut file, _)| {
        let content = content_of(&mut file).ok().filter(|content| content == read)?;
        Some(ReplacedFile::new(file, &content))
    });
    if let Some(before) = replaced {
        return Ok(Some(Replacement { written, before }));
    }
    // Never removed by an error below: it is the user's.
    beside.disable_cleanup(true);
    put_back(beside.path(), path, FileId::of(&written), &mut at)?;
    Ok(None)
}

/// Puts an edit back that an exchange took out. The file `ours` is removed; a newer
/// edit that came out instead stays at the path, and the earlier one beside it.
fn put_back(edit: &Path, path: &Path, ours: FileId, at: &mut impl FnMut(Moment)) -> io::Result<()> {
    let mut in_place = ours;
    loop {
        let edited = FileId::of(&fs::symlink_metadata(edit)?);
        match exchange(edit, path) {
            Ok(()) => {}
            // The user has removed the new file.
            Err(Errno::NOENT) => {
                if !rename_to_free(edit, path)? {
                    keep_beside(edit, path)?;
                }
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        }
        at(Moment::Exchanged);
        let out = FileId::of(&fs::symlink_metadata(edit)?);
        if out == ours {
            return fs::remove_file(edit);
        }
        if out == in_place {
            return keep_beside(edit, path);
        }
        in_place = edited;
    }
}

/// Renames the earlier of two edits to a free name beside the file.
fn keep_beside(edit: &Path, path: &Path) -> io::Result<()> {
    let kept = move_beside(edit, path)?;
    tracing::warn!(
        file = %path.display(),
        kept = %kept.display(),
        "the file was edited twice while Longhaul wrote it; the earlier edit is kept",
    );
    Ok(())
}

/// Renames a file to a free name beside a path, and returns that name.
fn move_beside(from: &Path, path: &Path) -> io::Result<PathBuf> {
    loop {
        let free = free_name(path);
        if rename_to_free(from, &free)? {
            return Ok(free);
        }
    }
}

/// Renames a file to a path that does not exist; `false`: it does.
fn rename_to_free(from: &Path, to: &Path) -> io::Result<bool> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        Ok(()) => Ok(true),
        Err(Errno::EXIST) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Creates a file that is not there; `None`: there is one.
pub fn create(path: &Path, new: &[u8]) -> io::Result<Option<Metadata>> {
    let file = beside(path, new, Permissions::from_mode(0o644))?;
    match file.persist_noclobber(path) {
        Ok(file) => file.metadata().map(Some),
        Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => Ok(None),
        Err(error) => Err(error.error),
    }
}

/// Creates a file with a free name beside a path, and returns its path.
pub(super) fn create_beside(path: &Path, new: &[u8]) -> io::Result<PathBuf> {
    loop {
        let free = free_name(path);
        if create(&free, new)?.is_some() {
            return Ok(free);
        }
    }
}

/// Removes a file whose content was read as `read`; `false`: it has changed, and stays.
pub(crate) fn remove(path: &Path, read: &[u8]) -> io::Result<bool> {
    // An empty file in its place is removed only if it is the own one.
    let Some(swapped) = swap(path, read, b"")? else { return Ok(false) };
    let away = move_beside(path, path)?;
    if FileId::of(&fs::symlink_metadata(&away)?) == FileId::of(&swapped.written) {
        return fs::remove_file(away).map(|()| true);
    }
    if !rename_to_free(&away, path)? {
        keep_beside(&away, path)?;
    }
    Ok(false)
}

/// A durable temporary file beside a path.
fn beside(path: &Path, bytes: &[u8], permissions: Permissions) -> io::Result<NamedTempFile> {
    let directory = path.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new().prefix(TEMP_PREFIX).tempfile_in(directory)?;
    file.write_all(bytes)?;
    file.as_file().set_permissions(permissions)?;
    file.as_file().sync_all()?;
    Ok(file)
}

fn open(path: &Path) -> io::Result<Option<(File, u64)>> {
    placed::open(path, Links::Refused).map_err(io::Error::other)
}

fn content_of(file: &mut File) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    file.take(LONGEST + 1).read_to_end(&mut content)?;
    Ok(content)
}

fn exchange(one: &Path, other: &Path) -> rustix::io::Result<()> {
    renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE)
}

/// Identifies a file, whatever its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileId {
    device: u64,
    inode: u64,
}

impl FileId {
    fn of(found: &Metadata) -> Self {
        Self { device: found.dev(), inode: found.ino() }
    }
}

/// A free name beside a file for an edit of it.
fn free_name(path: &Path) -> PathBuf {
    let mut number = 1;
    loop {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".edit-{number}"));
        let free = PathBuf::from(name);
        if fs::symlink_metadata(&free).is_err() {
            return free;
        }
        number += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Edits a list, as a user does, at some exchanges while Longhaul replaces it. Returns the
    /// files of the directory at the end.
    fn check(edits: &[(usize, &str)], in_place: bool, expected: &[(&str, &str)]) {
        let directory = tempfile::tempdir().unwrap();
        let list = directory.path().join("list");
        fs::write(&list, "read").unwrap();
        let mut moment = 0;
        let edit = |_| {
            for (_, text) in edits.iter().filter(|(at, _)| *at == moment) {
                if in_place {
                    fs::write(&list, text).unwrap();
                } else {
                    let new = directory.path().join("new");
                    fs::write(&new, text).unwrap();
                    fs::rename(new, &list).unwrap();
                }
            }
            moment += 1;
        };
        let swapped = swap_with(&list, b"read", b"written", edit).unwrap();
        assert_eq!(swapped.is_some(), edits.iter().all(|(at, _)| *at != 0));
        let mut found: Vec<_> = fs::read_dir(directory.path())
            .unwrap()
            .map(|entry| entry.unwrap())
            .map(|entry| {
                let name = entry.file_name().into_string().unwrap();
                (name, fs::read_to_string(entry.path()).unwrap())
            })
            .collect();
        found.sort();
        let expected: Vec<_> =
            expected.iter().map(|(name, text)| ((*name).into(), (*text).into())).collect();
        assert_eq!(found, expected, "{edits:?}");
    }

    #[test]
    fn an_edit_at_any_moment_is_kept() {
        for in_place in [false, true] {
            check(&[], in_place, &[("list", "written")]);
            check(&[(0, "edit")], in_place, &[("list", "edit")]);
            check(&[(1, "edit")], in_place, &[("list", "edit")]);
        }
        let both = [("list", "second"), ("list.edit-1", "first")];
        check(&[(0, "first"), (1, "second")], false, &both);
        check(&[(0, "first"), (2, "second")], false, &[("list", "second")]);
        let newest = [("list", "third"), ("list.edit-1", "second")];
        check(&[(0, "first"), (1, "second"), (2, "third")], false, &newest);
    }

    #[test]
    fn a_later_write_to_the_replaced_file_is_found() {
        let directory = tempfile::tempdir().unwrap();
        let list = directory.path().join("list");
        fs::write(&list, "read").unwrap();
        let mut editor = File::options().write(true).open(&list).unwrap();
        let mut before = swap(&list, b"read", b"written").unwrap().unwrap().before;
        assert_eq!(before.written_since().unwrap(), None);
        before.settled = change_time(&before.file.metadata().unwrap());
        editor.write_all(b"mine").unwrap();
        assert_eq!(before.written_since().unwrap().as_deref(), Some(&b"mine"[..]));
    }

    #[test]
    fn files_are_created_and_removed_only_as_expected() {
        let directory = tempfile::tempdir().unwrap();
        let list = directory.path().join("list");
        assert!(swap(&list, b"", b"new").unwrap().is_none());
        assert!(create(&list, b"new").unwrap().is_some());
        assert!(create(&list, b"other").unwrap().is_none());
        assert!(!remove(&list, b"other").unwrap());
        assert_eq!(fs::read_to_string(&list).unwrap(), "new");
        assert!(remove(&list, b"new").unwrap());
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    }
}
