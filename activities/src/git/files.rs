//! Reads files, and writes them so that a crash leaves the old or the new bytes.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use longhaul_engine::Failure;

use crate::files::placed::{self, Links};
use crate::files::{Durability, replace_file};
use crate::machine::{self, Operation};

/// A file system failure: operation, path and error.
pub(super) fn failed(what: &str, path: &Path, error: &io::Error) -> Failure {
    let message = format!("cannot {what} {}: {error}", path.display());
    machine::failure(error, Operation::Files, path, message, Failure::retryable)
}

/// The longest git file, in bytes: an index grows with the number of files.
const LONGEST: u64 = 1 << 30;

/// The bytes of a file; `None` if it does not exist.
pub(super) fn read(path: &Path) -> Result<Option<Vec<u8>>, Failure> {
    placed::read(path, Links::Followed, LONGEST).map_err(|error| unreadable(&error, path))
}

/// Whether a git directory keeps its refs in tables, which only git reads: files are stand-ins.
pub(super) fn has_reftable(common: &Path) -> bool {
    common.join("reftable").is_dir()
}

/// The failure for a file that exists and cannot be read. Retryable: an agent may have placed it,
/// and that can be undone.
pub(super) fn unreadable(error: &placed::Unreadable, path: &Path) -> Failure {
    machine::unreadable(error, path, Failure::retryable)
}

/// Replaces a file atomically, without syncing: for content that has no value after a power cut.
/// Creates its directory. A file with these bytes stays.
pub(super) fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    if has_bytes(path, bytes) {
        return Ok(());
    }
    replace(path, bytes, Durability::Unsynced).map_err(|error| failed("write", path, &error))
}

/// Whether the path is a file with these bytes, and has no other name.
fn has_bytes(path: &Path, bytes: &[u8]) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| {
        found.is_file() && found.nlink() == 1 && found.len() == bytes.len() as u64
    }) && fs::read(path).is_ok_and(|found| found == bytes)
}

/// Copies an index with its modification time; `false` if there is none. Git trusts an index entry
/// only if the file is older than the index.
pub(super) fn copy_with_time(from: &Path, to: &Path) -> Result<bool, Failure> {
    let Some(bytes) = read(from)? else { return Ok(false) };
    write(to, &bytes)?;
    let time = fs::metadata(from).and_then(|metadata| metadata.modified());
    let copied = time.and_then(|time| fs::File::options().write(true).open(to)?.set_modified(time));
    copied.map(|()| true).map_err(|error| failed("write", to, &error))
}

/// Replaces a file atomically and returns when the new bytes are on disk. Creates its directory.
pub(super) fn write_durably(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    replace(path, bytes, Durability::Synced).map_err(|error| failed("write", path, &error))
}

fn replace(path: &Path, bytes: &[u8], durability: Durability) -> io::Result<()> {
    fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))?;
    replace_file(path, bytes, durability)
}

/// Removes a file or a directory tree; succeeds if nothing exists. A symbolic link is removed,
/// never followed.
pub(super) fn remove(path: &Path) -> Result<(), Failure> {
    crate::files::remove_all(path).map_err(|error| failed("remove", path, &error))
}

/// The absolute path, with links resolved.
pub(super) fn canonical(path: &Path) -> Result<PathBuf, Failure> {
    fs::canonicalize(path).map_err(|error| failed("find", path, &error))
}

/// The first of the numbered paths that is free.
pub(super) fn first_free(path: impl Fn(u64) -> PathBuf) -> PathBuf {
    let mut number = 1;
    while is_there(&path(number)) {
        number += 1;
    }
    path(number)
}

/// Whether the path exists, even as a dangling link.
pub(super) fn is_there(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok()
}

/// Splits git's `-z` output, without the empty last part.
pub(super) fn nul_separated(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.split(|byte| *byte == 0).filter(|part| !part.is_empty())
}

/// A path from git's output.
pub(super) fn path_of(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}

/// A path for display.
pub(super) fn shown(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
