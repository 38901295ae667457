//! Answering other commands, while this process owns the log.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinHandle;

use super::desk::{Answer, Ask, Desk};
use super::socket;

/// The longest question, in bytes.
const QUESTION_MAX: u64 = 16 * 1024 * 1024;

/// The socket of an owner; dropping it takes the socket away.
pub(crate) struct Server {
    path: PathBuf,
    task: JoinHandle<()>,
}

impl Server {
    /// Listens for other commands. To be called by the owner only: a socket that is there belongs to a dead one.
    pub(crate) fn start(data_dir: &Path, desk: Arc<Desk>) -> Result<Self> {
        let path = socket::path(data_dir);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
            fs::set_permissions(folder, Permissions::from_mode(0o700))
                .with_context(|| format!("cannot keep others out of {}", folder.display()))?;
        }
        let _ = fs::remove_file(&path);
        let listener =
            UnixListener::bind(&path).with_context(|| format!("cannot listen on the socket {}", path.display()))?;
        let task = tokio::spawn(async move {
            loop {
                match listener.accept().await {
                    Ok((stream, _)) => drop(tokio::spawn(converse(Arc::clone(&desk), stream))),
                    Err(error) => {
                        tracing::warn!("cannot take a connection: {error}");
                        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
                    }
                }
            }
        });
        Ok(Self { path, task })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
        let _ = fs::remove_file(&self.path);
    }
}

async fn converse(desk: Arc<Desk>, mut stream: UnixStream) {
    let (reader, mut writer) = stream.split();
    let mut line = String::new();
    if BufReader::new(reader.take(QUESTION_MAX)).read_line(&mut line).await.is_err() || line.is_empty() {
        return;
    }
    let is_closed = desk.is_closed.read().await;
    let answer = match serde_json::from_str::<Ask>(&line) {
        _ if *is_closed => Answer::Leaving,
        Ok(ask) => desk.answer(ask).await,
        Err(error) => Answer::Refused { reason: format!("the running Longhaul does not understand this: {error}") },
    };
    if let Ok(mut line) = serde_json::to_vec(&answer) {
        line.push(b'\n');
        let _ = writer.write_all(&line).await;
    }
}
