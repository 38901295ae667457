//! The unix socket of an owner: one request and one response per connection, each a line of JSON.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use longhaul_activities::files::placed::{self, Links};
use nix::unistd::geteuid;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::UnixStream;

use crate::error::{Gone, Result};
use crate::lock_wait::{Notify, SOON, silence_timeout};
use crate::request::{Outgoing, Request, Response};

/// The longest socket path that every system accepts.
const PATH_MAX: usize = 100;

const NAME: &str = "owner.sock";

/// Where the socket of a data directory is.
pub(crate) fn path(data_dir: &Path) -> PathBuf {
    data_dir.join(NAME)
}

/// The address of a data directory's socket. A path that is too long is reached through
/// `/proc/self/fd`.
#[derive(Debug)]
pub(crate) struct Address {
    path: PathBuf,
    /// Kept open: the path leads through it.
    _directory: Option<File>,
}

impl Address {
    pub(crate) fn of(data_dir: &Path) -> io::Result<Self> {
        let path = path(data_dir);
        if path.as_os_str().len() <= PATH_MAX {
            return Ok(Self { path, _directory: None });
        }
        let directory = File::open(data_dir)?;
        let short = PathBuf::from(format!("/proc/self/fd/{}", directory.as_raw_fd()));
        if !short.exists() {
            let reason = format!(
                "the path {} is too long for a socket: name a shorter --data-dir",
                path.display()
            );
            return Err(io::Error::other(reason));
        }
        Ok(Self { path: short.join(NAME), _directory: Some(directory) })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

/// Refuses a peer that runs as another user.
pub(crate) fn check_peer(stream: &UnixStream, data_dir: &Path) -> io::Result<()> {
    let peer = stream.peer_cred()?.uid();
    let own = geteuid().as_raw();
    let owner = std::fs::metadata(data_dir)?.uid();
    if is_trusted(peer, own, owner) {
        return Ok(());
    }
    Err(io::Error::new(
        io::ErrorKind::PermissionDenied,
        format!("the socket belongs to user {peer}; expected your own user or root"),
    ))
}

/// Allows our own user and root; for root also the user who owns the data directory.
fn is_trusted(peer: u32, own: u32, owner: u32) -> bool {
    peer == own || peer == 0 || (own == 0 && peer == owner)
}

async fn connect(data_dir: &Path) -> io::Result<UnixStream> {
    let stream = UnixStream::connect(Address::of(data_dir)?.path()).await?;
    check_peer(&stream, data_dir)?;
    Ok(stream)
}

/// The longest content of a lock file, in bytes.
const LONGEST_PID: u64 = 64;

/// The process id that the owner recorded when it took the lock.
pub(crate) fn owner_pid(data_dir: &Path) -> String {
    let content = placed::read_text(&data_dir.join("lock"), Links::Followed, LONGEST_PID);
    content.ok().flatten().unwrap_or_default().trim().to_owned()
}

/// The owner of the log in another process.
pub struct Remote {
    pub(crate) data_dir: PathBuf,
    /// Whether a request goes to the next owner if this one exits.
    pub(crate) fails_over: bool,
    pub(crate) notify: Notify,
}

impl Remote {
    /// Connects to the owner of a data directory, if it accepts connections.
    pub(crate) async fn connect(data_dir: &Path, notify: Notify) -> Option<Self> {
        Self::is_reachable(data_dir).await.then(|| Self {
            data_dir: data_dir.to_owned(),
            fails_over: false,
            notify,
        })
    }

    /// Whether the owner of a data directory accepts connections.
    pub(crate) async fn is_reachable(data_dir: &Path) -> bool {
        connect(data_dir).await.is_ok()
    }

    /// Enables failover to the next owner.
    pub(crate) fn with_failover(self) -> Self {
        Self { fails_over: true, ..self }
    }

    /// Sends a request. The server drops a request that arrives incomplete.
    pub(crate) async fn call<R: Request>(&self, request: &R) -> Result<R::Response> {
        match self.send(&Outgoing::once(request)).await?.next().await? {
            Response::Done(response) => Ok(response),
            Response::Error(error) => Err(error.into()),
            Response::Closing | Response::End => Err(Gone::NotSent.into()),
        }
    }

    /// Subscribes to a request.
    pub(crate) async fn watch<R: Request>(&self, request: &R) -> Result<Stream, Gone> {
        self.send(&Outgoing::watched(request)).await
    }

    async fn send<R: Request>(&self, request: &Outgoing<'_, R>) -> Result<Stream, Gone> {
        let not_sent = |_| Gone::NotSent;
        let mut stream = connect(&self.data_dir).await.map_err(not_sent)?;
        let mut line = serde_json::to_vec(request).expect("requests have a JSON form");
        line.push(b'\n');
        stream.write_all(&line).await.map_err(not_sent)?;
        let lines = BufReader::new(stream).lines();
        Ok(Stream { lines, data_dir: self.data_dir.clone(), notify: self.notify })
    }
}

/// The response stream of an owner.
pub(crate) struct Stream {
    lines: Lines<BufReader<UnixStream>>,
    data_dir: PathBuf,
    notify: Notify,
}

impl Stream {
    /// Waits for the next response, as long as keep-alives (empty lines) arrive.
    pub(crate) async fn next<T: DeserializeOwned>(&mut self) -> Result<Response<T>, Gone> {
        loop {
            let line = match tokio::time::timeout(SOON, self.lines.next_line()).await {
                Ok(line) => line,
                Err(_) => self.next_late().await?,
            };
            match line.ok().flatten() {
                Some(line) if line.is_empty() => {}
                Some(line) => return serde_json::from_str(&line).map_err(Gone::Unreadable),
                None => return Err(Gone::Interrupted),
            }
        }
    }

    /// The next line from a process that has been silent for a while.
    async fn next_late(&mut self) -> Result<io::Result<Option<String>>, Gone> {
        let process = owner_pid(&self.data_dir);
        (self.notify)(&format!("waiting for process {process}, which runs this log"));
        let waited =
            tokio::time::timeout(silence_timeout().saturating_sub(SOON), self.lines.next_line())
                .await;
        waited
            .map_err(|_| Gone::TimedOut { process, seconds: silence_timeout().max(SOON).as_secs() })
    }
}

#[cfg(test)]
mod tests {
    use super::is_trusted;

    #[test]
    fn only_our_own_user_and_root_are_trusted() {
        assert!(
            is_trusted(1000, 1000, 1000) && is_trusted(0, 1000, 1000) && is_trusted(1000, 0, 1000)
        );
        assert!(
            !is_trusted(1001, 1000, 1000)
                && !is_trusted(1001, 1000, 1001)
                && !is_trusted(1001, 0, 1000)
        );
    }
}
