//! File-system syncs: everything that an event refers to reaches stable storage before the event
//! does.
//!
//! Programs in a work tree do not sync their files, so one `syncfs` covers what no list of files
//! could. Concurrent callers share one call.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};

/// Syncs file systems for one process. Clones share pending calls.
#[derive(Debug, Clone, Default)]
pub(crate) struct Disk {
    systems: Arc<std::sync::Mutex<HashMap<u64, Arc<System>>>>,
}

/// One file system, by its device number.
#[derive(Debug, Default)]
struct System {
    requested: AtomicU64,
    synced: AtomicU64,
    lock: tokio::sync::Mutex<()>,
}

impl Disk {
    /// Returns when everything written so far to the file systems of these paths is on stable
    /// storage.
    ///
    /// # Errors
    /// If a path is missing, or the kernel reports that a write was lost.
    pub(crate) async fn sync(&self, paths: &[&Path]) -> io::Result<()> {
        let mut seen = Vec::new();
        for path in paths {
            let device = std::fs::metadata(path)?.dev();
            if seen.contains(&device) {
                continue;
            }
            seen.push(device);
            let system = {
                let mut systems = self.systems.lock().unwrap_or_else(PoisonError::into_inner);
                Arc::clone(systems.entry(device).or_default())
            };
            system.sync(path.to_path_buf()).await?;
        }
        Ok(())
    }
}

impl System {
    async fn sync(&self, path: PathBuf) -> io::Result<()> {
        let ticket = self.requested.fetch_add(1, Ordering::SeqCst) + 1;
        let _lock = self.lock.lock().await;
        if self.synced.load(Ordering::SeqCst) >= ticket {
            return Ok(());
        }
        // Covers every caller that has a ticket by now.
        let covered = self.requested.load(Ordering::SeqCst);
        tokio::task::spawn_blocking(move || sync_system_of(&path))
            .await
            .map_err(io::Error::other)??;
        self.synced.store(covered, Ordering::SeqCst);
        Ok(())
    }
}

#[cfg(target_os = "linux")]
fn sync_system_of(path: &Path) -> io::Result<()> {
    Ok(nix::unistd::syncfs(File::open(path)?)?)
}

/// Other systems sync all file systems or none, and do not report errors.
#[cfg(not(target_os = "linux"))]
fn sync_system_of(path: &Path) -> io::Result<()> {
    drop(File::open(path)?);
    nix::unistd::sync();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn callers_that_wait_together_share_a_sync() {
        let dir = tempfile::tempdir().unwrap();
        let disk = Disk::default();
        let device = std::fs::metadata(dir.path()).unwrap().dev();
        disk.sync(&[dir.path(), dir.path()]).await.unwrap();
        let system = Arc::clone(&disk.systems.lock().unwrap()[&device]);
        assert_eq!(
            system.synced.load(Ordering::SeqCst),
            1,
            "one call for two paths of one file system"
        );
        let lock = system.lock.lock().await;
        let release = async {
            while system.requested.load(Ordering::SeqCst) < 3 {
                tokio::task::yield_now().await;
            }
            drop(lock);
        };
        let paths = [dir.path()];
        let (first, second, ()) = tokio::join!(disk.sync(&paths), disk.sync(&paths), release);
        first.unwrap();
        second.unwrap();
        assert_eq!(system.synced.load(Ordering::SeqCst), 3, "the first call covered the second");
    }

    #[tokio::test]
    async fn a_missing_path_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        assert!(Disk::default().sync(&[&dir.path().join("gone")]).await.is_err());
    }
}
