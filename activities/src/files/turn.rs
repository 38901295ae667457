//! Turns: of several projectors of one folder, and of those that move a checkout, only one at a time is at its files; and of
//! several processes, only one at a time changes the feature list.

use std::collections::HashMap;
use std::fs::File;
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

/// The right to change the feature list of a project, among all processes that ask for it; dropping it gives it up.
#[derive(Debug)]
pub struct ListTurn(#[expect(dead_code, reason = "it is held, not used")] Option<File>);

/// Waits for the right to change the feature list of the project at `root`. To be held from before the list is read until it
/// is written, and for nothing else. Where the file system knows no locks, nobody waits.
pub fn list_turn(root: &Path) -> ListTurn {
    // The folder itself: no file of ours has to be there for it.
    let folder = File::open(root).ok();
    ListTurn(folder.filter(|folder| folder.lock().is_ok()))
}
