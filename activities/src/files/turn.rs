//! Turns: of several projectors of one folder, and of those that move a checkout, only one at a time is at its files.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex as Lock, PoisonError, Weak};

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
