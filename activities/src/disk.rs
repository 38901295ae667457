//! File-system syncs: everything that an event refers to reaches stable storage before the event
//! does.
//!
//! Programs in a work tree do not sync their files, so one `syncfs` covers what no list of files
//! could. Concurrent callers share one call.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
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
    /// The last ticket given to a caller.
    requested: AtomicU64,
    done: tokio::sync::Mutex<Done>,
}

/// The calls so far.
#[derive(Debug, Default)]
struct Done {
    /// The highest ticket that a successful call covered.
    synced: u64,
    /// The highest ticket that a failed call covered, and its error.
    failed: Option<(u64, io::Error)>,
}

impl Done {
    /// The result of the call that covered a ticket; `None`: none did.
    ///
    /// The kernel reports a lost write to one caller only, so a second call would succeed although
    /// the data of both is lost. An earlier ticket may get the error of a later call.
    fn result(&self, ticket: u64) -> Option<io::Result<()>> {
        match &self.failed {
            Some((last, error)) if ticket <= *last => Some(Err(match error.raw_os_error() {
                Some(code) => io::Error::from_raw_os_error(code),
                None => io::Error::other(error.to_string()),
            })),
            _ => (ticket <= self.synced).then_some(Ok(())),
        }
    }
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
            let path = path.to_path_buf();
            system.sync(move || sync_system_of(&path)).await?;
        }
        Ok(())
    }
}

impl System {
    async fn sync(&self, call: impl FnOnce() -> io::Result<()> + Send + 'static) -> io::Result<()> {
        let ticket = self.requested.fetch_add(1, Ordering::SeqCst) + 1;
        let mut done = self.done.lock().await;
        if let Some(result) = done.result(ticket) {
            return result;
        }
        // Covers every caller that has a ticket by now.
        let covered = self.requested.load(Ordering::SeqCst);
        match tokio::task::spawn_blocking(call).await.map_err(io::Error::other).flatten() {
            Ok(()) => done.synced = covered,
            Err(error) => done.failed = Some((covered, error)),
        }
        done.result(ticket).unwrap_or(Ok(()))
    }
}

#[cfg(target_os = "linux")]
fn sync_system_of(path: &Path) -> io::Result<()> {
    Ok(nix::unistd::syncfs(File::open(path)?)?)
}

/// Other systems sync all file systems or none, do not report errors, and may return earlier.
#[cfg(not(target_os = "linux"))]
fn sync_system_of(path: &Path) -> io::Result<()> {
    nix::unistd::sync();
    File::open(path)?.sync_all()
}

#[cfg(test)]
mod tests {
    use nix::errno::Errno;

    use super::*;

    #[tokio::test]
    async fn callers_that_wait_together_share_a_sync() {
        let dir = tempfile::tempdir().unwrap();
        let disk = Disk::default();
        let device = std::fs::metadata(dir.path()).unwrap().dev();
        disk.sync(&[dir.path(), dir.path()]).await.unwrap();
        let system = Arc::clone(&disk.systems.lock().unwrap()[&device]);
        let synced = system.done.lock().await.synced;
        assert_eq!(synced, 1, "one call for two paths of one file system");
        let (first, second) = both(&system, || Ok(())).await;
        first.unwrap();
        second.unwrap();
        assert_eq!(system.done.lock().await.synced, 3, "the first call covered the second");
    }

    #[tokio::test]
    async fn a_lost_write_is_reported_to_all_callers_that_waited() {
        let system = System::default();
        let lost = || Err(io::Error::from_raw_os_error(Errno::EIO as i32));
        let (first, second) = both(&system, lost).await;
        for result in [first, second] {
            assert_eq!(result.unwrap_err().raw_os_error(), Some(Errno::EIO as i32));
        }
        system.sync(|| Ok(())).await.unwrap();
    }

    /// Two callers that wait; only the first may call the kernel.
    async fn both(
        system: &System,
        call: fn() -> io::Result<()>,
    ) -> (io::Result<()>, io::Result<()>) {
        let done = system.done.lock().await;
        let last = system.requested.load(Ordering::SeqCst) + 2;
        let release = async {
            while system.requested.load(Ordering::SeqCst) < last {
                tokio::task::yield_now().await;
            }
            drop(done);
        };
        let second = || -> io::Result<()> { panic!("a second call") };
        let (first, second, ()) = tokio::join!(system.sync(call), system.sync(second), release);
        (first, second)
    }

    #[tokio::test]
    async fn a_missing_path_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        assert!(Disk::default().sync(&[&dir.path().join("gone")]).await.is_err());
    }
}
