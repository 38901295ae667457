//! The local socket of an owner: one question, one answer, each a line of JSON.

use std::path::{Path, PathBuf};

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
    /// The data directory, if whoever has the log next is to be asked when this one goes away.
    pub(super) next: Option<PathBuf>,
}

/// The owner went away and gave no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Gone {
    #[error("the process that runs this log ended before it took this up: ask again")]
    Before,
    #[error("the process that runs this log ended before it answered: look whether this was done before you ask again")]
    Amid,
}

impl Gone {
    /// Whether the same may be asked again, of somebody else.
    pub(super) fn allows(&self, again: &Ask) -> bool {
        matches!(self, Self::Before) || again.only_looks()
    }
}

impl Remote {
    /// The owner of a data directory, if one answers.
    pub(super) async fn connect(data_dir: &Path) -> Option<Self> {
        let path = path(data_dir);
        UnixStream::connect(&path).await.ok().map(|_| Self { path, next: None })
    }

    /// The same, with whoever has the log next to be asked when this one goes away.
    pub(super) fn or_next(self, data_dir: &Path) -> Self {
        Self { next: Some(data_dir.to_owned()), ..self }
    }

    /// Asks it. A question that does not come through whole is not taken up.
    pub(super) async fn ask(&self, ask: &Ask) -> Result<Answer, Gone> {
        let before = |_| Gone::Before;
        let mut stream = UnixStream::connect(&self.path).await.map_err(before)?;
        let mut line = serde_json::to_vec(ask).expect("questions have a JSON form");
        line.push(b'\n');
        stream.write_all(&line).await.map_err(before)?;
        let mut answer = String::new();
        let read = BufReader::new(stream).read_line(&mut answer).await;
        match read.ok().and_then(|_| serde_json::from_str(&answer).ok()) {
            Some(Answer::Leaving) => Err(Gone::Before),
            Some(answer) => Ok(answer),
            None => Err(Gone::Amid),
        }
    }
}
