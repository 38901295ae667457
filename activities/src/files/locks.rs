//! Locks: one projector or one move of a checkout at a time writes the files of a directory, and
//! one process at a time changes its feature list.

use std::collections::HashMap;
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex as Lock, PoisonError, Weak, mpsc};
use std::time::Duration;

use tokio::sync::Mutex;

type Locks = HashMap<PathBuf, Weak<Mutex<()>>>;

static LOCKS: LazyLock<Lock<Locks>> = LazyLock::new(Lock::default);

/// Per-directory lock, held across read and write, so that projections never go backwards.
pub(crate) fn files_lock(root: &Path) -> Arc<Mutex<()>> {
    let mut locks = LOCKS.lock().unwrap_or_else(PoisonError::into_inner);
    locks.retain(|_, lock| lock.strong_count() > 0);
    if let Some(lock) = locks.get(root).and_then(Weak::upgrade) {
        return lock;
    }
    let lock = Arc::default();
    locks.insert(root.to_owned(), Arc::downgrade(&lock));
    lock
}

/// The lock of a project's feature list, shared among all processes; dropping it releases it.
#[derive(Debug)]
pub struct ListLock(#[expect(dead_code, reason = "it is held, not used")] Option<File>);

/// Timeout of the lock for projectors: a stopped holder must not block them.
pub(crate) const LIST_LOCK_TIMEOUT: Duration = Duration::from_secs(5);

/// Waits for the lock of the feature list at `root`; after the timeout, continues without it. Held
/// only from before the list is read until it is written.
pub fn lock_list(root: &Path, timeout: Duration) -> ListLock {
    // No lock file is needed: users who lock a project lock its directory.
    let git = root.join(".git");
    let Ok(file) = File::open(if git.exists() { &git } else { root }) else {
        return ListLock(None);
    };
    match lock_within(file, timeout) {
        Ok(file) => ListLock(Some(file)),
        Err(error) => {
            tracing::warn!(
                root = %root.display(),
                %error,
                "the feature list is changed without waiting for others",
            );
            ListLock(None)
        }
    }
}

/// Waits for the lock of a file. A lock request has no timeout, so a thread makes it; a thread that
/// gets the lock too late drops the file.
pub(crate) fn lock_within(file: File, timeout: Duration) -> Result<File, TryLockError> {
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => {}
        result => return result.map(|()| file),
    }
    let (sender, locked) = mpsc::channel();
    std::thread::spawn(move || {
        let _ = sender.send(file.lock().map(|()| file));
    });
    let locked = locked.recv_timeout(timeout).map_err(|_| TryLockError::WouldBlock)?;
    locked.map_err(TryLockError::Error)
}
