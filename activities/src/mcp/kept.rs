//! The servers of sessions. A session uses one process or connection of a server for all its calls:
//! a browser, for example, keeps its page.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use longhaul_engine::RunId;

use super::connection::Connection;

/// A server that is not called for so long is ended: its session may have been terminated.
const IDLE: Duration = Duration::from_mins(30);

/// The servers of all sessions. Clones share them.
#[derive(Clone, Default)]
pub struct McpServers(Arc<Mutex<HashMap<Key, Kept>>>);

/// A server of a session.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) session: RunId,
    pub(super) server: String,
}

/// A connection that no call uses now.
struct Kept {
    connection: Connection,
    tree: PathBuf,
    /// Ends it when it has been idle.
    _idle: AbortOnDrop,
}

struct AbortOnDrop(tokio::task::JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl std::fmt::Debug for McpServers {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_tuple("McpServers").field(&self.lock().len()).finish()
    }
}

impl McpServers {
    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Kept>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a connection for a call.
    pub(super) fn take(&self, key: &Key) -> Option<Connection> {
        self.lock().remove(key).map(|kept| kept.connection)
    }

    /// Keeps a connection for the next call.
    pub(super) fn keep(&self, key: Key, connection: Connection, tree: &Path) {
        let all = Arc::downgrade(&self.0);
        let of_idle = key.clone();
        let idle = tokio::spawn(async move {
            tokio::time::sleep(IDLE).await;
            end_idle(&all, &of_idle);
        });
        let kept = Kept { connection, tree: tree.to_owned(), _idle: AbortOnDrop(idle) };
        self.lock().insert(key, kept);
    }

    /// Ends the servers of a session.
    pub(crate) async fn end_of(&self, session: &RunId) {
        self.end_where(|key, _| key.session == *session).await;
    }

    /// Ends the servers of all sessions in a work tree.
    pub(crate) async fn end_in(&self, tree: &Path) {
        self.end_where(|_, kept| kept.tree == tree).await;
    }

    async fn end_where(&self, mut is_over: impl FnMut(&Key, &Kept) -> bool) {
        let over: Vec<_> = self.lock().extract_if(|key, kept| is_over(key, kept)).collect();
        for (_, kept) in over {
            kept.connection.close().await;
        }
    }
}

fn end_idle(all: &Weak<Mutex<HashMap<Key, Kept>>>, key: &Key) {
    let Some(all) = all.upgrade() else { return };
    let kept = McpServers(all).lock().remove(key);
    if let Some(Kept { connection, _idle, .. }) = kept {
        // This task is the one that `_idle` would abort.
        tokio::spawn(connection.close());
    }
}
