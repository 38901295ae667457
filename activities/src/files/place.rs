//! The place of the files: written whole or not at all, only when they differ, and never through a
//! symbolic link.

use std::fs::{self, Metadata, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::error::FilesError;

/// The folder in a project that holds what Longhaul writes for people.
const OWN: &str = ".longhaul";

/// The top of a project.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) root: PathBuf,
}

impl Place {
    /// Brings a file of `.longhaul/` up to date. Its path is relative to that folder.
    pub(super) fn write_own(&self, name: &str, text: &str) -> Result<(), FilesError> {
        let mut folder = self.root.join(OWN);
        make_folder(&folder)?;
        let name = match name.split_once('/') {
            Some((inner, name)) => {
                folder.push(inner);
                make_folder(&folder)?;
                name
            }
            None => name,
        };
        let path = folder.join(name);
        if holds(&path, text.as_bytes()) {
            return Ok(());
        }
        replace_if(&path, text.as_bytes(), Durable::No, || true).map(drop)
    }
}

/// Whether new bytes must be on disk before they take the place of the old ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Durable {
    Yes,
    /// What is lost in a power cut is written again from the log.
    No,
}

/// Puts new bytes in the place of a file, if it is still the one to be replaced; that is asked
/// last, for bringing bytes to disk may take long. `None`: it is not. A symbolic link there is
/// replaced, not followed.
pub(super) fn replace_if(
    path: &Path,
    bytes: &[u8],
    durable: Durable,
    is_still: impl FnOnce() -> bool,
) -> Result<Option<Metadata>, FilesError> {
    let write = || -> io::Result<Option<Metadata>> {
        let folder = path.parent().unwrap_or(Path::new("."));
        let mut file = tempfile::Builder::new().prefix(".longhaul-").tempfile_in(folder)?;
        file.write_all(bytes)?;
        file.as_file().set_permissions(permissions_for(path))?;
        if durable == Durable::Yes {
            file.as_file().sync_all()?;
        }
        if !is_still() {
            return Ok(None);
        }
        file.persist(path)?.metadata().map(Some)
    };
    write().map_err(FilesError::file("write", path))
}

/// What is there without following a link; `None` if nothing is.
pub(super) fn look(path: &Path) -> Result<Option<Metadata>, FilesError> {
    match fs::symlink_metadata(path) {
        Ok(metadata) => Ok(Some(metadata)),
        Err(error) if is_missing(&error) => Ok(None),
        Err(error) => Err(FilesError::file("look at", path)(error)),
    }
}

/// Whether an error says that there is no such file.
pub(super) fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn make_folder(path: &Path) -> Result<(), FilesError> {
    match look(path)? {
        Some(found) if found.is_dir() => Ok(()),
        Some(found) if found.is_symlink() => Err(FilesError::Link(path.to_owned())),
        Some(_) => Err(FilesError::NotA { expected: "folder", path: path.to_owned() }),
        None => match fs::create_dir(path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                Err(FilesError::file("make", path)(error))
            }
            _ => Ok(()),
        },
    }
}

/// Whether a file, and not a link to one, holds exactly these bytes.
fn holds(path: &Path, bytes: &[u8]) -> bool {
    let same_length = fs::symlink_metadata(path)
        .is_ok_and(|found| found.is_file() && found.len() == bytes.len() as u64);
    same_length && fs::read(path).is_ok_and(|found| found == bytes)
}

/// Those of the old file; for a new one, the usual ones.
fn permissions_for(path: &Path) -> Permissions {
    let old = fs::symlink_metadata(path).ok().filter(Metadata::is_file);
    old.map_or_else(|| Permissions::from_mode(0o644), |old| old.permissions())
}
