//! Server side of the socket of the owner of a log.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::unix::WriteHalf;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Mutex;
use tokio::task::JoinHandle;

use crate::begin::ProjectStatus;
use crate::dispatch::Incoming;
use crate::error::{Error, Result};
use crate::perform::AnyRequest;
use crate::refused::{refusal, refused_read};
use crate::request::{Encoded, Request, RequestError, Response};
use crate::service::Service;
use crate::socket::{self, Address};
use crate::views::{FindProject, FindRun};
use crate::watch::Repeated;

/// The longest request, in bytes.
const QUESTION_MAX: u64 = 16 * 1024 * 1024;
/// Keep-alive interval: an empty line before the response shows that the owner works on it.
const SIGN_OF_LIFE: Duration = Duration::from_millis(500);
/// Write timeout of a response.
const READING_TAKES: Duration = Duration::from_secs(30);

/// The socket of an owner; dropping it removes the socket.
pub struct Listener {
    path: PathBuf,
    task: JoinHandle<()>,
}

impl Listener {
    /// Listens for other commands. Only the owner calls this: an existing socket was left by a dead
    /// owner.
    pub fn start(data_dir: &Path, service: Arc<Service>) -> Result<Self> {
        let path = socket::path(data_dir);
        longhaul_storage::private_directory(data_dir)?;
        let _ = fs::remove_file(&path);
        let address = Address::of(data_dir)
            .map_err(Error::io(format!("cannot listen in {}", data_dir.display())))?;
        let listener = UnixListener::bind(address.path())
            .map_err(Error::io(format!("cannot listen on the socket {}", path.display())))?;
        let data_dir = data_dir.to_owned();
        let task = tokio::spawn(async move {
            loop {
                match listener.accept().await {
                    Ok((stream, _)) => match socket::check_peer(&stream, &data_dir) {
                        Ok(()) => drop(tokio::spawn(converse(Arc::clone(&service), stream))),
                        Err(error) => tracing::warn!("a connection is refused: {error}"),
                    },
                    Err(error) => {
                        tracing::warn!("cannot take a connection: {error}");
                        // Usually out of descriptors: nothing announces that one is free.
                        tokio::time::sleep(Duration::from_millis(100)).await;
                    }
                }
            }
        });
        Ok(Self { path, task })
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.task.abort();
        let _ = fs::remove_file(&self.path);
    }
}

async fn converse(service: Arc<Service>, mut stream: UnixStream) {
    let peer = stream.peer_cred().ok().and_then(|peer| peer.pid());
    let (reader, writer) = stream.split();
    let mut line = String::new();
    if BufReader::new(reader.take(QUESTION_MAX)).read_line(&mut line).await.is_err()
        || line.is_empty()
    {
        return;
    }
    let writer = Mutex::new(writer);
    let handling = async {
        let parsed = serde_json::from_str::<Incoming<'_>>(&line).map_err(|error| error.to_string());
        let (is_watched, request) =
            match parsed.and_then(|incoming| Ok((incoming.watch, incoming.read()?))) {
                Ok(parsed) => parsed,
                Err(error) => {
                    let reason = format!("the running Longhaul does not understand this: {error}");
                    write(&writer, &Response::Error(RequestError::Refused { reason })).await;
                    return;
                }
            };
        let directory = service.log.directory();
        if let Some(refusal) = refusal(request.command(), peer, directory) {
            let error = refusal.error();
            refusal.record(&service).await;
            write(&writer, &Response::Error(error)).await;
            return;
        }
        match read_refusal(&*request, peer, directory) {
            Some(error) => {
                write(&writer, &Response::Error(error)).await;
            }
            None if is_watched && request.command().is_none() => {
                let mut repeated = Repeated::begin(Arc::clone(&service), request);
                let responses = async {
                    while let Some(response) = repeated.next().await {
                        if !write(&writer, &response).await {
                            return;
                        }
                    }
                };
                tokio::select! {
                    () = responses => {}
                    () = signs_of_life(&writer) => {}
                }
            }
            None => {
                service.handle(request, async |response| write(&writer, &response).await).await;
            }
        }
    };
    // An accepted request runs to its end, even if the client disconnects.
    let alive = async {
        signs_of_life(&writer).await;
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = handling => {}
        () = alive => {}
    }
}

/// Sends keep-alive lines until the client disconnects.
async fn signs_of_life(writer: &Mutex<WriteHalf<'_>>) {
    loop {
        tokio::time::sleep(SIGN_OF_LIFE).await;
        if writer.lock().await.write_all(b"\n").await.is_err() {
            return;
        }
    }
}

/// Writes a response; returns whether the client read it in time.
async fn write(writer: &Mutex<WriteHalf<'_>>, response: &Encoded) -> bool {
    let Ok(mut line) = serde_json::to_vec(response) else { return false };
    line.push(b'\n');
    let written =
        tokio::time::timeout(READING_TAKES, async { writer.lock().await.write_all(&line).await })
            .await;
    matches!(written, Ok(Ok(())))
}

/// Whether a read from within a session is refused: all but states of features and ids, because
/// the log holds the output of held-out checks.
fn read_refusal(
    request: &dyn AnyRequest,
    pid: Option<i32>,
    data_dir: &Path,
) -> Option<RequestError> {
    let readable = [ProjectStatus::NAME, FindRun::NAME, FindProject::NAME];
    (!readable.contains(&request.name())).then(|| refused_read(pid, data_dir)).flatten()
}
