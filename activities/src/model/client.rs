//! HTTP clients, made when they are first needed.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use longhaul_engine::Failure;
use reqwest::{Client, Url, redirect};

const CONNECT: Duration = Duration::from_secs(30);
const KEEPALIVE: Duration = Duration::from_mins(1);

/// The clients of one handler.
#[derive(Debug, Clone, Default)]
pub(crate) struct Clients(Arc<Mutex<HashMap<Kind, Client>>>);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Kind {
    /// Without TLS, the certificates of the system are not needed and not read.
    plain: bool,
    /// A server on this machine is not reached through a proxy.
    local: bool,
}

impl Kind {
    fn of(url: &Url) -> Self {
        Self { plain: url.scheme() == "http", local: is_local(url) }
    }
}

impl Clients {
    /// The client for a URL, if it is made already.
    fn known(&self, url: &Url) -> Option<Client> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&Kind::of(url)).cloned()
    }

    /// The client for a URL; the files of the system are read in a blocking task.
    pub(crate) async fn client_for(&self, url: &Url) -> Result<Client, Failure> {
        if let Some(client) = self.known(url) {
            return Ok(client);
        }
        let clients = self.clone();
        let url = url.clone();
        let client = tokio::task::spawn_blocking(move || clients.make(&url)).await;
        client.map_err(|error| Failure::retryable(format!("no HTTP client was made: {error}")))?
    }

    /// The client for a URL. The first one may read the certificates of the system.
    fn make(&self, url: &Url) -> Result<Client, Failure> {
        let kind = Kind::of(url);
        let mut clients = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = clients.get(&kind) {
            return Ok(client.clone());
        }
        let client = build(kind)?;
        clients.insert(kind, client.clone());
        Ok(client)
    }
}

fn build(kind: Kind) -> Result<Client, Failure> {
    // Fails if another part of the process has chosen a provider, which serves as well.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut builder = Client::builder()
        .user_agent(concat!("longhaul/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT)
        .tcp_keepalive(KEEPALIVE)
        // A redirect would carry the key to another server.
        .redirect(redirect::Policy::none());
    if kind.plain {
        builder = builder.tls_certs_only([]);
    }
    if kind.local {
        builder = builder.no_proxy();
    }
    builder.build().map_err(|error| {
        let cause = causes(&error);
        Failure::terminal(format!("the HTTP client cannot be set up: {cause}"))
    })
}

fn is_local(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost"
        || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// An error and its causes in one line.
pub(crate) fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        next = cause.source();
    }
    text
}
