//! The directory of the files. Writes are atomic, skipped without a change, and never follow a
//! symbolic link.

use std::fs::{self, Metadata};
use std::io;
use std::path::{Path, PathBuf};

use super::OWN_DIR;
use super::error::FilesError;
use super::placed::is_absent;
use super::replace::{Durability, replace_file};

/// The top directory of a project.
#[derive(Debug)]
pub(super) struct ProjectRoot {
    pub(super) root: PathBuf,
}

impl ProjectRoot {
    /// Updates a file of `.longhaul/`. Its path is relative to that directory.
    pub(super) fn write_own(&self, name: &str, text: &str) -> Result<(), FilesError> {
        let mut directory = self.root.join(OWN_DIR);
        make_directory(&directory)?;
        let name = match name.split_once('/') {
            Some((inner, name)) => {
                directory.push(inner);
                make_directory(&directory)?;
                name
            }
            None => name,
        };
        let path = directory.join(name);
        if holds(&path, text.as_bytes()) {
            return Ok(());
        }
        // Not synced: after a power cut it is rewritten from the log.
        replace_file(&path, text.as_bytes(), Durability::Unsynced)
            .map_err(FilesError::file("write", &path))
    }
}

/// The metadata at a path, without following a link; `None` if nothing exists.
pub(super) fn metadata(path: &Path) -> Result<Option<Metadata>, FilesError> {
    match fs::symlink_metadata(path) {
        Ok(metadata) => Ok(Some(metadata)),
        Err(error) if is_absent(&error) => Ok(None),
        Err(error) => Err(FilesError::file("read the metadata of", path)(error)),
    }
}

fn make_directory(path: &Path) -> Result<(), FilesError> {
    match metadata(path)? {
        Some(found) if found.is_dir() => Ok(()),
        Some(found) if found.is_symlink() => Err(FilesError::Link(path.to_owned())),
        Some(_) => Err(FilesError::NotA { expected: "directory", path: path.to_owned() }),
        None => match fs::create_dir(path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                Err(FilesError::file("create", path)(error))
            }
            _ => Ok(()),
        },
    }
}

/// Whether a regular file, not a link, holds exactly these bytes.
fn holds(path: &Path, bytes: &[u8]) -> bool {
    let same_length = fs::symlink_metadata(path)
        .is_ok_and(|found| found.is_file() && found.len() == bytes.len() as u64);
    same_length && fs::read(path).is_ok_and(|found| found == bytes)
}
