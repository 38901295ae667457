//! A scripted model service on loopback, for tests and demonstrations: Anthropic's Messages API, and
//! OpenAI's chat completions and responses, streaming. No model is behind it: a function decides each reply from
//! the conversation in the request.
//!
//! ```
//! use longhaul_model_server::{Answer, ModelServer, Options};
//!
//! let server = ModelServer::start(Options::default(), |request| {
//!     if request.results() == 0 {
//!         Answer::call("shell", &serde_json::json!({ "command": "make" })).into()
//!     } else {
//!         Answer::text("Done.").into()
//!     }
//! })?;
//! assert!(server.url().starts_with("http://127.0.0.1:"));
//! assert!(server.records().is_empty());
//! # Ok::<_, std::io::Error>(())
//! ```
//!
//! Tokens are bytes / 4 of the texts in a conversation, so usage grows with the messages and a
//! small window fills up.

mod events;
mod fault;
mod http;
mod reply;
mod request;
mod responses;
mod serve;

use std::collections::{HashMap, HashSet};
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

pub use fault::{Fault, Overflow};
pub use reply::{After, Answer, Hold, Reply, Stop};
pub use request::{Part, Protocol, Request, Side, Turn};

/// The settings of a server.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The window in tokens; a longer prompt is refused.
    pub window: Option<u64>,
    /// The form of that refusal; by default that of the protocol.
    pub overflow: Option<Overflow>,
    /// The longest piece of a stream in bytes; by default an event.
    pub piece: Option<usize>,
    /// The key that is needed; by default none.
    pub key: Option<String>,
}

/// The end of a request to the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The reply is being sent, or held.
    Open,
    /// The answer was sent to its last byte, and the client had not closed the connection. A client
    /// that is killed at this moment may have lost it.
    Answered,
    /// An error was sent.
    Refused,
    /// The connection ended before the reply did.
    Broken,
}

/// A request to the model, as the server remembers it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// See [`Request::digest`].
    pub digest: String,
    /// The tokens of its prompt.
    pub tokens: u64,
    /// The tokens of its answer.
    pub answer: u64,
    /// Its end.
    pub outcome: Outcome,
}

/// The tokens of requests that a provider charges for: those that it answered, and those whose
/// answer was cut off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Paid {
    /// All of them.
    pub tokens: u64,
    /// Those of conversations that were paid for before.
    pub twice: u64,
}

type Script = dyn Fn(&Request) -> Reply + Send + Sync;

/// The state that the threads of a server share.
pub(crate) struct Shared {
    pub(crate) options: Options,
    pub(crate) script: Box<Script>,
    pub(crate) state: Mutex<State>,
    pub(crate) changed: Condvar,
    stopped: AtomicBool,
}

#[derive(Default)]
pub(crate) struct State {
    pub(crate) records: Vec<Record>,
    /// The prefixes that an answer has put into the cache.
    pub(crate) cached: HashSet<String>,
    connections: HashMap<SocketAddr, TcpStream>,
}

impl Shared {
    pub(crate) fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A running server. It stops when it is dropped.
pub struct ModelServer {
    address: SocketAddr,
    shared: Arc<Shared>,
}

impl ModelServer {
    /// Starts a server on a free port of the loopback interface.
    pub fn start(
        options: Options,
        script: impl Fn(&Request) -> Reply + Send + Sync + 'static,
    ) -> io::Result<Self> {
        Self::serve(TcpListener::bind("127.0.0.1:0")?, options, script)
    }

    /// Starts a server on a port that is bound already.
    pub fn serve(
        listener: TcpListener,
        options: Options,
        script: impl Fn(&Request) -> Reply + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            options,
            script: Box::new(script),
            state: Mutex::default(),
            changed: Condvar::new(),
            stopped: AtomicBool::new(false),
        });
        let accepting = Arc::clone(&shared);
        std::thread::spawn(move || accept(&listener, &accepting));
        Ok(Self { address, shared })
    }

    /// Its URL, without `/v1`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// All requests to the model so far, in the order of their arrival.
    pub fn records(&self) -> Vec<Record> {
        self.shared.state().records.clone()
    }

    /// The number of requests with this outcome.
    pub fn count(&self, outcome: Outcome) -> usize {
        self.shared.state().records.iter().filter(|record| record.outcome == outcome).count()
    }

    /// The tokens paid for.
    pub fn paid(&self) -> Paid {
        let mut seen = HashSet::new();
        let mut paid = Paid::default();
        let is_paid = |record: &&Record| record.outcome != Outcome::Refused;
        for record in self.records().iter().filter(is_paid) {
            let tokens = record.tokens + record.answer;
            paid.tokens += tokens;
            if !seen.insert(record.digest.clone()) {
                paid.twice += tokens;
            }
        }
        paid
    }

    /// The digests of conversations that were answered more than once.
    pub fn repeated(&self) -> Vec<String> {
        let mut seen = HashMap::<String, usize>::new();
        let records = self.records();
        for record in records.iter().filter(|record| record.outcome == Outcome::Answered) {
            *seen.entry(record.digest.clone()).or_default() += 1;
        }
        seen.into_iter().filter(|(_, times)| *times > 1).map(|(digest, _)| digest).collect()
    }

    /// Blocks until the records meet a condition; returns whether they did within the limit.
    pub fn wait_for(&self, limit: Duration, condition: impl Fn(&[Record]) -> bool) -> bool {
        let end = Instant::now() + limit;
        let mut state = self.shared.state();
        while !condition(&state.records) {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            let waited = self.shared.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::SeqCst);
        // Ends the wait for a connection.
        let _ = TcpStream::connect(self.address);
        for connection in self.shared.state().connections.values() {
            let _ = connection.shutdown(std::net::Shutdown::Both);
        }
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    for connection in listener.incoming() {
        if shared.stopped.load(Ordering::SeqCst) {
            return;
        }
        let Ok(connection) = connection else { continue };
        let (Ok(peer), Ok(kept)) = (connection.peer_addr(), connection.try_clone()) else {
            continue;
        };
        shared.state().connections.insert(peer, kept);
        let shared = Arc::clone(shared);
        std::thread::spawn(move || {
            // An error is the end of a connection, which a client may cause at any time.
            let _ = serve::connection(&connection, &shared);
            let _ = connection.shutdown(std::net::Shutdown::Both);
            shared.state().connections.remove(&peer);
        });
    }
}
