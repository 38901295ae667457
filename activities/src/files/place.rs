//! The directory of the files. Writes are atomic, skipped without a change, and never follow a
//! symbolic link.

use std::fs::{self, Metadata, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::error::FilesError;

/// The directory in a project for everything that Longhaul writes for people.
const OWN: &str = ".longhaul";

/// The top directory of a project.
#[derive(Debug)]
pub(super) struct ProjectRoot {
    pub(super) root: PathBuf,
}

impl ProjectRoot {
    /// Updates a file of `.longhaul/`. Its path is relative to that directory.
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
        replace(&path, text.as_bytes()).map_err(FilesError::file("write", &path))
    }
}

/// Replaces a file. It is not synced: after a power cut it is rewritten from the log. A symbolic
/// link at the path is replaced, not followed.
fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new().prefix(".longhaul-").tempfile_in(folder)?;
    file.write_all(bytes)?;
    file.as_file().set_permissions(permissions_for(path))?;
    file.persist(path)?;
    Ok(())
}

/// The metadata at a path, without following a link; `None` if nothing exists.
pub(super) fn metadata(path: &Path) -> Result<Option<Metadata>, FilesError> {
    match fs::symlink_metadata(path) {
        Ok(metadata) => Ok(Some(metadata)),
        Err(error) if is_missing(&error) => Ok(None),
        Err(error) => Err(FilesError::file("look at", path)(error)),
    }
}

/// Whether an error means that the file does not exist.
pub(super) fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn make_folder(path: &Path) -> Result<(), FilesError> {
    match metadata(path)? {
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

/// Whether a regular file, not a link, holds exactly these bytes.
fn holds(path: &Path, bytes: &[u8]) -> bool {
    let same_length = fs::symlink_metadata(path)
        .is_ok_and(|found| found.is_file() && found.len() == bytes.len() as u64);
    same_length && fs::read(path).is_ok_and(|found| found == bytes)
}

/// The permissions of the old file; for a new one, the default.
fn permissions_for(path: &Path) -> Permissions {
    let old = fs::symlink_metadata(path).ok().filter(Metadata::is_file);
    old.map_or_else(|| Permissions::from_mode(0o644), |old| old.permissions())
}
