//! Temporary files between a pipe of this command and the owner of the log.

use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use longhaul_server::leftovers;

/// A temporary path, removed on drop.
pub(super) struct Scratch(PathBuf);

impl Scratch {
    /// In the data directory, where the owner of the log can write and where disk space is
    /// provided.
    pub(super) fn in_dir(data_dir: &Path) -> Self {
        let process = std::process::id();
        let id = uuid::Uuid::now_v7().simple();
        Self(data_dir.join(format!("{}{process}-{id}.tmp", leftovers::SCRATCH)))
    }

    /// The content of standard input. Does not create a missing data directory.
    pub(super) fn of_input(data_dir: &Path) -> Result<Self> {
        use std::os::unix::fs::OpenOptionsExt;
        let scratch = if data_dir.is_dir() {
            Self::in_dir(data_dir)
        } else {
            Self::in_dir(&std::env::temp_dir())
        };
        let mut file = File::options()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&scratch.0)
            .with_context(|| format!("cannot write {}", scratch.0.display()))?;
        std::io::copy(&mut std::io::stdin().lock(), &mut file)
            .context("cannot read standard input")?;
        Ok(scratch)
    }

    /// A directory in the temporary directory of the system.
    pub(super) fn nowhere() -> Self {
        Self::in_dir(&std::env::temp_dir())
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if std::fs::remove_file(&self.0).is_err() {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }
}
