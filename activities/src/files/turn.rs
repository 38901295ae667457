//! Turns: of several projectors of one folder, and of those that move a checkout, only one at a time is at its files; and of
//! several processes, only one at a time changes the feature list.

use std::collections::HashMap;
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex as Lock, PoisonError, Weak};
use std::time::{Duration, Instant};

use tokio::sync::Mutex;

type Turns = HashMap<PathBuf, Weak<Mutex<()>>>;

static TURNS: LazyLock<Lock<Turns>> = LazyLock::new(Lock::default);

/// What whoever writes the files of a folder holds from before it reads the log, so that nothing old follows on
/// something new.
pub(crate) fn turn_of(root: &Path) -> Arc<Mutex<()>> {
    let mut turns = TURNS.lock().unwrap_or_else(PoisonError::into_inner);
    turns.retain(|_, turn| turn.strong_count() > 0);
    if let Some(turn) = turns.get(root).and_then(Weak::upgrade) {
        return turn;
    }
    let turn = Arc::default();
    turns.insert(root.to_owned(), Arc::downgrade(&turn));
    turn
}

/// The right to change the feature list of a project, among all processes that ask for it; dropping it gives it up.
#[derive(Debug)]
pub struct ListTurn(#[expect(dead_code, reason = "it is held, not used")] Option<File>);

/// How long those wait for the right who keep lists current: a list is changed in a moment, and a process that was stopped in
/// the middle of that must not stop them.
pub(crate) const LIST_PATIENCE: Duration = Duration::from_secs(5);
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// Waits for the right to change the feature list of the project at `root`, so long at most; then it is done without. To be
/// held from before the list is read until it is written, and for nothing else.
pub fn list_turn(root: &Path, patience: Duration) -> ListTurn {
    // No file of ours has to be there for it, and people who lock a project lock its folder.
    let git = root.join(".git");
    let Ok(file) = File::open(if git.exists() { &git } else { root }) else { return ListTurn(None) };
    let begun = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return ListTurn(Some(file)),
            Err(TryLockError::WouldBlock) if begun.elapsed() < patience => std::thread::sleep(LOOK_AGAIN),
            Err(error) => {
                tracing::warn!(root = %root.display(), %error, "the feature list is changed without waiting for others");
                return ListTurn(None);
            }
        }
    }
}
