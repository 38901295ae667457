//! The scripted model, which also measures.

use std::collections::HashMap;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use longhaul_model_server::{Answer, ModelServer, Options, Part, Reply, Request};
use longhaul_storage::{SledStore, Statistics};
use serde_json::json;

use super::super::workload;

/// The behaviour of the model in each session.
#[derive(Debug, Clone, Copy)]
pub(super) struct Script {
    /// Turns with a note, before the last one.
    pub(super) turns: usize,
    /// The mean time of an answer.
    pub(super) pace: Duration,
    /// Whether a session ends with a question to a person, instead of its claim.
    pub(super) asks: bool,
    /// Whether the requests are kept.
    pub(super) keeps: bool,
}

/// One turn, as the model sees it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sample {
    /// From the answer to the arrival of the next request.
    pub(super) took: Duration,
    /// The log at that time.
    pub(super) log: Statistics,
}

#[derive(Default)]
struct Observed {
    /// The last answer of each session.
    answered: HashMap<String, Instant>,
    samples: Vec<Sample>,
    /// The requests, if they are kept.
    bodies: Vec<String>,
}

/// A running model.
pub(super) struct Model {
    server: ModelServer,
    observed: Arc<Mutex<Observed>>,
}

impl Model {
    /// Starts a model. `store` is the log of its sessions, if it is in this process.
    pub(super) fn start(script: Script, store: Weak<SledStore>) -> Result<Self> {
        let observed: Arc<Mutex<Observed>> = Arc::default();
        let shared = Arc::clone(&observed);
        let server = ModelServer::start(Options::default(), move |request| {
            let log = store.upgrade().map(|store| store.statistics()).unwrap_or_default();
            let session = session(request);
            lock(&shared).observe(request, &session, log);
            if script.keeps {
                lock(&shared).bodies.push(request.body.to_string());
            }
            std::thread::sleep(script.time(request));
            let reply = script.reply(request);
            lock(&shared).answered.insert(session, Instant::now());
            reply
        })?;
        Ok(Self { server, observed })
    }

    pub(super) fn url(&self) -> String {
        self.server.url()
    }

    /// The turns so far.
    pub(super) fn samples(&self) -> Vec<Sample> {
        lock(&self.observed).samples.clone()
    }

    /// The requests so far, if they are kept.
    pub(super) fn bodies(&self) -> Vec<String> {
        lock(&self.observed).bodies.clone()
    }

    /// Sends requests one after the other over one connection, and drops the answers.
    pub(super) fn send(&self, bodies: &[String]) -> Result<()> {
        let url = self.url();
        let address = url.trim_start_matches("http://");
        let mut connection = TcpStream::connect(address).context("the model is not reached")?;
        connection.set_nodelay(true)?;
        let mut buffer = vec![0; 64 * 1024];
        for body in bodies {
            let head = format!(
                "POST /v1/messages HTTP/1.1\r\nhost: {address}\r\ncontent-length: {}\r\n\r\n",
                body.len()
            );
            connection.write_all(&[head.as_bytes(), body.as_bytes()].concat())?;
            let mut response = Vec::new();
            while !response.ends_with(b"\r\n0\r\n\r\n") {
                let read = connection.read(&mut buffer)?;
                ensure!(read > 0, "the model closed the connection");
                response.extend_from_slice(&buffer[..read]);
            }
        }
        Ok(())
    }
}

impl Observed {
    fn observe(&mut self, request: &Request, session: &str, log: Statistics) {
        if let Some(answered) = self.answered.get(session) {
            let took = request.arrived.saturating_duration_since(*answered);
            self.samples.push(Sample { took, log });
        }
    }
}

impl Script {
    fn reply(&self, request: &Request) -> Reply {
        let turn = request.results();
        let answer = if turn < self.turns {
            let note = json!({ "kind": "progress", "text": workload::text(turn) });
            Answer::text("The next step is done.").and_call("note", &note.to_string())
        } else if self.asks {
            Answer::call("ask", &json!({ "question": "Which one?" }))
        } else {
            Answer::call("finish", &json!({ "summary": "Everything is done." }))
        };
        answer.into()
    }

    /// Half to one and a half of the mean, different for each turn of each session.
    fn time(&self, request: &Request) -> Duration {
        let percent = 50 + u32::try_from(request.number.wrapping_mul(37) % 100).unwrap_or_default();
        self.pace * percent / 100
    }
}

/// The session of a request: its first text.
fn session(request: &Request) -> String {
    let text = request.parts().find_map(|part| match part {
        Part::Text(text) => Some(text.clone()),
        _ => None,
    });
    text.unwrap_or_default()
}

fn lock(observed: &Mutex<Observed>) -> MutexGuard<'_, Observed> {
    observed.lock().unwrap_or_else(PoisonError::into_inner)
}
