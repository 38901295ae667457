//! The directory that a measurement happens in, removed whatever comes.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};

use crate::term;

/// A directory of this process alone.
pub(super) struct Place {
    path: PathBuf,
    /// Where it is, if that was created for it.
    created: Option<PathBuf>,
}

impl Place {
    /// Creates one in a directory, and that too if it is not there.
    pub(super) fn within(parent: &Path) -> Result<Self> {
        let parent = std::path::absolute(parent)?;
        let path = parent.join(format!("bench-{}", std::process::id()));
        let created = (!parent.exists()).then_some(parent);
        std::fs::create_dir_all(&path).with_context(|| format!("cannot create {}", path.display()))?;
        Ok(Self { path, created })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Err(error) = remove(&self.path) {
            term::say(format!("longhaul: {} could not be removed: {error}", self.path.display()));
        }
        if let Some(created) = &self.created {
            let _ = std::fs::remove_dir(created);
        }
    }
}

/// Removes a directory, also while a thread that was interrupted still writes to it.
pub(super) fn remove(path: &Path) -> std::io::Result<()> {
    for _ in 0..20 {
        match std::fs::remove_dir_all(path) {
            Err(error) if error.kind() == std::io::ErrorKind::DirectoryNotEmpty => {
                std::thread::sleep(Duration::from_millis(50));
            }
            done => return done,
        }
    }
    std::fs::remove_dir_all(path)
}
