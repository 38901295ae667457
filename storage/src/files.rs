//! Files whose names and contents are known to be on stable storage.

use std::fs::File;
use std::path::{Path, PathBuf};

use longhaul_engine::StoreError;

use crate::flaw::io;

/// Makes the names in a directory durable.
pub(crate) fn sync_directory(path: &Path) -> Result<(), StoreError> {
    sync(path)
}

fn sync(path: &Path) -> Result<(), StoreError> {
    File::open(path).and_then(|file| file.sync_all()).map_err(|error| io("syncing", path, &error))
}

/// Makes all files below a directory, and their names, durable.
pub(crate) fn sync_tree(directory: &Path) -> Result<(), StoreError> {
    for path in entries(directory)? {
        if path.is_dir() {
            sync_tree(&path)?;
        } else {
            sync(&path)?;
        }
    }
    sync_directory(directory)
}

/// The paths in a directory.
pub(crate) fn entries(directory: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let fail = |error| io("reading the directory", directory, &error);
    std::fs::read_dir(directory).map_err(fail)?.map(|entry| Ok(entry.map_err(fail)?.path())).collect()
}

/// Creates a directory with those above it, and makes their names durable.
pub(crate) fn create_directory(path: &Path) -> Result<(), StoreError> {
    let parent = match path.parent() {
        Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
        Some(parent) => parent,
        None => return Ok(()),
    };
    if !path.exists() {
        create_directory(parent)?;
        match std::fs::create_dir(path) {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                return Err(io("creating the directory", path, &error));
            }
            _ => {}
        }
        // Also when somebody else was faster, who may not have synced it yet.
        sync_directory(parent)?;
    }
    Ok(())
}
