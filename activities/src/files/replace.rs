//! Replaces a file atomically: a crash leaves the old or the new bytes.

use std::fs::{self, File, Metadata, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use super::TEMP_PREFIX;

/// Whether the new bytes are on stable storage when the function returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Durability {
    /// A power cut may lose them: they can be made again.
    Unsynced,
    /// They and the name of the file are on stable storage.
    Synced,
}

/// Replaces a file; its directory must exist. A symbolic link at the path is replaced, not
/// followed.
pub(crate) fn replace_file(path: &Path, bytes: &[u8], durability: Durability) -> io::Result<()> {
    let directory = path.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new().prefix(TEMP_PREFIX).tempfile_in(directory)?;
    file.write_all(bytes)?;
    file.as_file().set_permissions(permissions_for(path))?;
    if durability == Durability::Synced {
        file.as_file().sync_all()?;
    }
    file.persist(path)?;
    match durability {
        Durability::Synced => File::open(directory)?.sync_all(),
        Durability::Unsynced => Ok(()),
    }
}

/// The permissions of the old file; for a new one, the default: a temporary file is private to its
/// owner, the file that it becomes is not.
fn permissions_for(path: &Path) -> Permissions {
    let old = fs::symlink_metadata(path).ok().filter(Metadata::is_file);
    old.map_or_else(|| Permissions::from_mode(0o644), |old| old.permissions())
}
