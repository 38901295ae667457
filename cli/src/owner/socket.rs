//! The local socket of an owner: one question, one answer, each a line of JSON.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;

use super::desk::{Answer, Ask};

/// The longest path that every system takes for a socket.
const PATH_MAX: usize = 100;

/// Where the socket of a data directory is: in it, or, if its path is too long for a socket, in the system's temporary
/// directory under a name made from it.
pub(super) fn path(data_dir: &Path) -> PathBuf {
    let path = data_dir.join("owner.sock");
    if path.as_os_str().len() <= PATH_MAX {
        return path;
    }
    let name = longhaul_activities::process::owner_id(data_dir);
    std::env::temp_dir().join(format!("longhaul-{name}")).join("owner.sock")
}

/// The owner of a log, in another process.
pub(crate) struct Remote {
    path: PathBuf,
}

impl Remote {
    /// The owner of a data directory, if one answers.
    pub(super) async fn connect(data_dir: &Path) -> Option<Self> {
        let path = path(data_dir);
        UnixStream::connect(&path).await.ok().map(|_| Self { path })
    }

    pub(super) async fn ask(&self, ask: &Ask) -> Result<Answer> {
        let gone = || "the process that runs this log does not answer";
        let mut stream = UnixStream::connect(&self.path).await.with_context(gone)?;
        let mut line = serde_json::to_vec(ask)?;
        line.push(b'\n');
        stream.write_all(&line).await.with_context(gone)?;
        let mut answer = String::new();
        BufReader::new(stream).read_line(&mut answer).await.with_context(gone)?;
        serde_json::from_str(&answer).with_context(gone)
    }
}
