//! Durable file operations: contents and names are synced.

use std::fs::{File, Permissions};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::error::io;
use longhaul_engine::StoreError;

/// Refuses a path with something other than a file: opening a pipe can block.
pub(crate) fn must_be_file(path: &Path) -> Result<(), StoreError> {
    match std::fs::metadata(path) {
        Ok(found) if !found.is_file() => Err(StoreError::Unusable(format!(
            "{} is no regular file: move it away, and it is created",
            path.display()
        ))),
        _ => Ok(()),
    }
}

/// Removes a file, if it exists.
pub(crate) fn remove(path: &Path) -> Result<(), StoreError> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(io("removing", path, &error))
        }
        _ => Ok(()),
    }
}

/// Creates a data directory that only its owner can open, or removes the permissions of others from
/// an existing one.
///
/// # Errors
/// If it cannot be created, or others use it: a directory such as `/tmp`, or one with files that do
/// not belong to a log.
pub fn private_directory(path: &Path) -> Result<(), StoreError> {
    let metadata = match std::fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
                create_directory(parent)?;
            }
            match std::fs::DirBuilder::new().mode(0o700).create(path) {
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                    if path.is_symlink() && !path.exists() {
                        return Err(StoreError::Unusable(format!(
                            "{} is a link to a place that does not exist: mount or create it, \
                             or name another directory with --data-dir",
                            path.display()
                        )));
                    }
                    return private_directory(path);
                }
                Err(error) => return Err(io("creating the directory", path, &error)),
                Ok(()) => return sync_directory(path.parent().unwrap_or(Path::new("."))),
            }
        }
        Err(error) => return Err(io("looking at", path, &error)),
    };
    let mode = metadata.permissions().mode();
    let is_ours = metadata.uid() == nix::unistd::geteuid().as_raw();
    if !metadata.is_dir() || !is_ours || mode.trailing_zeros() >= 6 {
        return Ok(());
    }
    let there = entries(path)?;
    if mode & STICKY != 0 || !(there.is_empty() || there.iter().any(|entry| is_of_a_log(entry))) {
        return Err(StoreError::Unusable(format!(
            "{} can be opened by others and holds files that do not belong to a log: \
             name a new directory with --data-dir, or \
             run `chmod 700 {0}`",
            path.display()
        )));
    }
    std::fs::set_permissions(path, Permissions::from_mode(0o700))
        .map_err(|error| io("restricting the permissions of", path, &error))?;
    tracing::warn!(
        "{} could be opened by others (mode {:o}); its mode is 700 now",
        path.display(),
        mode & 0o777
    );
    Ok(())
}

/// Whether a file name occurs only in data directories.
fn is_of_a_log(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name == "lock"
        || name == "log"
        || name.starts_with("log.")
        || name.starts_with("shutdown_marker")
}

/// The sticky bit: everyone may create files in the directory.
const STICKY: u32 = 0o1000;

/// Syncs a directory: makes its names durable.
pub(crate) fn sync_directory(path: &Path) -> Result<(), StoreError> {
    sync(path)
}

fn sync(path: &Path) -> Result<(), StoreError> {
    File::open(path).and_then(|file| file.sync_all()).map_err(|error| io("syncing", path, &error))
}

/// Syncs all files and directories below a directory.
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
    std::fs::read_dir(directory)
        .map_err(fail)?
        .map(|entry| Ok(entry.map_err(fail)?.path()))
        .collect()
}

/// Creates a directory and its parents, durably.
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
        // Also if another process created it: that one may not have synced the name yet.
        sync_directory(parent)?;
    }
    Ok(())
}
