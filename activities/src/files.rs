//! Project files derived from the log, for people and their programs. They are never read back as
//! truth.
//!
//! | file | content |
//! |---|---|
//! | the feature list | `status`, `passes`, `last_tested` of each entry; all else is the user's |
//! | `claude-progress.txt` | the timeline; append-only |
//! | `.longhaul/progress.md` | the state of each feature |
//! | `.longhaul/state.json` | the same for programs |
//! | `.longhaul/session-log.txt` | the completed steps, the last 2,000 lines |
//! | `.longhaul/history.json` | the timeline, the last 2,000 entries |
//! | `.longhaul/sessions/session-NNN.json` | one session each, numbered by start |
//!
//! Times in them are those of the events, so the same log gives the same bytes.
//!
//! # Actions
//!
//! An `Action` of `claude-progress.txt` is one of these, and so is a `kind` of `history.json`:
//! `session_started`, `session_ended` (the agent reports completion), `handoff` (its context is
//! full), `session_failed`, `checkpoint` (the work of a session is committed), `tampering`,
//! `gates_passed`, `gates_failed`, `merge_conflict`, `setup_failed`, `baseline_failed`,
//! `feature_completed`, `feature_blocked`, `feature_cancelled`, `paused`, `resumed`, `parked`
//! (the outcome of an effect is unknown), `reconciled`. Only in `history.json`:
//! `feature_started`, `worktree_opened`, `setup_passed`, `baseline_passed`, `merged`, `landed`,
//! `worktree_closed`, `attempt_failed`, `list_problem`.

mod access;
mod error;
mod fold;
mod hosted;
mod list;
pub(crate) mod locks;
mod place;
pub mod placed;
mod progress_file;
mod project;
mod removal;
mod replace;
mod reports;
mod run;
mod session;
mod state;
mod swap;
mod text;
mod timeline;

use std::path::PathBuf;
use std::sync::Arc;

use longhaul_engine::{RunId, RunReader};
use tokio::sync::Mutex;

pub(crate) use access::{give_access, give_reading};
pub use error::FilesError;
use error::FirstError;
pub(crate) use locks::{LIST_LOCK_TIMEOUT, files_lock};
pub use locks::{ListLock, lock_list};
pub use progress_file::progress_file_obstacle;
pub(crate) use progress_file::{NAME as PROGRESS_FILE, end as progress_file, end_in_checkout};
pub use removal::remove_all;
pub(crate) use replace::{Durability, replace_file};
use state::{Cursors, NewEvents, State};
pub(crate) use swap::remove;
pub use swap::{Replacement, create, swap};

/// The directory in a project for everything that Longhaul writes for people and agents.
pub(crate) const OWN_DIR: &str = ".longhaul";

/// The start of the names of temporary files that replace another. Git leaves such files out.
pub(crate) const TEMP_PREFIX: &str = ".longhaul-";

/// Keeps the files of one project current from the log.
pub struct Projector {
    store: Arc<dyn RunReader>,
    project: RunId,
    lock: Arc<Mutex<()>>,
    /// Held until the files are written, even when the caller is dropped.
    state: Arc<Mutex<State>>,
}

impl std::fmt::Debug for Projector {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Projector").field("project", &self.project).finish_non_exhaustive()
    }
}

impl Projector {
    /// A projector for a project whose checkout is at `root`. Does no I/O yet.
    pub fn new(store: Arc<dyn RunReader>, project: RunId, root: PathBuf) -> Self {
        let lock = files_lock(&root);
        let state = Arc::new(Mutex::new(State::new(project.clone(), root)));
        Self { store, project, lock, state }
    }

    /// Whether a program that had opened the list before it was replaced has edited it since. The
    /// next refresh takes the edit.
    pub async fn has_late_edit(&self) -> bool {
        self.state.lock().await.has_late_edit()
    }

    /// Reads new events and writes the files that they change.
    ///
    /// An unreadable run or unwritable file does not keep the others from being current; the first
    /// error is returned, and the next refresh tries again.
    pub async fn refresh(&mut self) -> Result<(), FilesError> {
        let lock = Arc::clone(&self.lock).lock_owned().await;
        let mut state = Arc::clone(&self.state).lock_owned().await;
        let mut first = FirstError::default();
        let news = self.news(&state.cursors, &mut first).await?;
        let writing = tokio::task::spawn_blocking(move || {
            let written = state.take(news);
            drop(lock);
            written
        });
        match writing.await {
            Ok(written) => first.take(written),
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(_) => first.take(Err(FilesError::Stopping)),
            },
        };
        first.into_result()
    }

    async fn news(
        &self,
        cursors: &Cursors,
        first: &mut FirstError,
    ) -> Result<NewEvents, FilesError> {
        let mut news = NewEvents::default();
        // The project first: the run events that it reacts to are then in the later reads.
        match self.store.read(&self.project, cursors.next(&self.project)).await {
            Ok(events) => news.add(self.project.clone(), events, None),
            Err(error) => _ = first.take(Err(error.into())),
        }
        for (run, summary) in self.store.runs(&format!("{}/", self.project)).await? {
            if cursors.have_all_of(&run, &summary) {
                continue;
            }
            match self.store.read(&run, cursors.next(&run)).await {
                Ok(events) => {
                    news.add(run, events, summary.status.is_terminal().then_some(summary));
                }
                Err(error) => _ = first.take(Err(error.into())),
            }
        }
        Ok(news)
    }
}
