//! The local socket of an owner: one question, one answer, each a line of JSON.

use std::path::{Path, PathBuf};

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::UnixStream;

use super::desk::{Answer, Ask};
use super::waiting::{ADVICE, SOON, patience};
use crate::term;

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

/// Whoever has the lock of a data directory left its number there.
fn holder(data_dir: &Path) -> String {
    std::fs::read_to_string(data_dir.join("lock")).unwrap_or_default().trim().to_owned()
}

/// The owner of a log, in another process.
pub(crate) struct Remote {
    pub(super) data_dir: PathBuf,
    /// Whether whoever has the log next is to be asked when this one goes away.
    pub(super) or_next: bool,
}

/// The owner went away and gave no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Gone {
    #[error("the process that runs this log ended before it took this up: ask again")]
    Before,
    #[error("the process that runs this log ended before it answered: look whether this was done before you ask again")]
    Amid,
    #[error("process {process} runs this log and does not answer for {seconds} seconds: {ADVICE}")]
    Silent { process: String, seconds: u64 },
    #[error("the process that runs this log, perhaps another version, gave an answer that cannot be read: {0}")]
    Strange(serde_json::Error),
}

impl Gone {
    /// Whether the same may be asked again, of somebody else.
    pub(super) fn allows(&self, again: &Ask) -> bool {
        match self {
            Self::Before => true,
            Self::Amid => again.only_looks(),
            Self::Silent { .. } | Self::Strange(_) => false,
        }
    }
}

impl Remote {
    /// The owner of a data directory, if one answers.
    pub(super) async fn connect(data_dir: &Path) -> Option<Self> {
        UnixStream::connect(path(data_dir)).await.ok()?;
        Some(Self { data_dir: data_dir.to_owned(), or_next: false })
    }

    /// The same, with whoever has the log next to be asked when this one goes away.
    pub(super) fn or_next(self) -> Self {
        Self { or_next: true, ..self }
    }

    /// Asks it. A question that does not come through whole is not taken up.
    pub(super) async fn ask(&self, ask: &Ask) -> Result<Answer, Gone> {
        let before = |_| Gone::Before;
        let mut stream = UnixStream::connect(path(&self.data_dir)).await.map_err(before)?;
        let mut line = serde_json::to_vec(ask).expect("questions have a JSON form");
        line.push(b'\n');
        stream.write_all(&line).await.map_err(before)?;
        let answer = self.hear(stream).await?;
        match serde_json::from_str(&answer) {
            Ok(Answer::Leaving) => Err(Gone::Before),
            Ok(answer) => Ok(answer),
            Err(_) if answer.is_empty() => Err(Gone::Amid),
            Err(error) => Err(Gone::Strange(error)),
        }
    }

    /// Waits for the answer, for as long as there are signs of life.
    async fn hear(&self, stream: UnixStream) -> Result<String, Gone> {
        let mut lines = BufReader::new(stream).lines();
        loop {
            let line = match tokio::time::timeout(SOON, lines.next_line()).await {
                Ok(line) => line,
                Err(_) => self.hear_late(&mut lines).await?,
            };
            match line.ok().flatten() {
                Some(line) if line.is_empty() => {}
                line => return Ok(line.unwrap_or_default()),
            }
        }
    }

    /// The next line of somebody who has been silent for a while.
    async fn hear_late(
        &self,
        lines: &mut Lines<BufReader<UnixStream>>,
    ) -> Result<std::io::Result<Option<String>>, Gone> {
        let process = holder(&self.data_dir);
        term::say(format!("waiting for process {process}, which runs this log"));
        let waited = tokio::time::timeout(patience().saturating_sub(SOON), lines.next_line()).await;
        waited.map_err(|_| Gone::Silent { process, seconds: patience().max(SOON).as_secs() })
    }
}
