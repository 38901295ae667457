//! Servers over streamable HTTP.

use longhaul_engine::Failure;
use longhaul_workflows::settings::McpSettings;
use reqwest::Url;
use rmcp::service::ClientInitializeError;
use rmcp::transport::streamable_http_client::{
    StreamableHttpClientTransportConfig, StreamableHttpError,
};
use rmcp::transport::{DynamicTransportError, StreamableHttpClientTransport};
use rmcp::{ServiceError, ServiceExt as _};

use super::{Client, Host, PATIENCE, no_answer};
use crate::model::client::causes;
use crate::obstacle::Obstacle;

/// Why a server with an address cannot be used. No connection is made.
pub(super) fn problem(name: &str, server: &McpSettings, url: &str) -> Option<Obstacle> {
    if !server.command.is_empty() {
        let problem = format!("[agent.mcp.{name}] has both `command` and `url`");
        return Some(Obstacle::new(problem, "remove one of them"));
    }
    let scheme = Url::parse(url).map(|url| url.scheme().to_owned());
    if !scheme.is_ok_and(|scheme| ["http", "https"].contains(&&*scheme)) {
        let problem = format!("`url` of [agent.mcp.{name}] is not an http or https URL");
        return Some(Obstacle::new(problem, "give one that begins with `https://` or `http://`"));
    }
    None
}

impl Host<'_> {
    /// Connects to a server.
    ///
    /// # Errors
    /// A terminal failure if the server is not reached, answers wrongly, or not within
    /// [`PATIENCE`].
    pub(super) async fn connect_over_http(
        &self,
        server: &str,
        settings: &McpSettings,
        url: &str,
    ) -> Result<Client, Failure> {
        let address = Url::parse(url).map_err(|error| self.failed(server, &error.to_string()))?;
        let http = self.clients.client_for(&address).await?;
        let mut config = StreamableHttpClientTransportConfig::with_uri(url);
        let given = |name: &str| Some(self.env.get(name)?.to_string_lossy().into_owned());
        config.auth_header = key_of(server, settings, given)?;
        let transport = StreamableHttpClientTransport::with_client(http, config);
        let connected = tokio::select! {
            connected = tokio::time::timeout(PATIENCE, ().serve(transport)) => connected,
            () = self.attempt.cancelled() => return Err(Failure::cancelled()),
        };
        let why = match connected {
            Ok(Ok(client)) => return Ok(client),
            Ok(Err(error)) => format!("does not answer: {}", begin_error(&error)),
            Err(_) => no_answer(),
        };
        Err(self.failed(server, &why))
    }
}

/// The cause of a failed connection. The text of the library names its own types.
fn begin_error(error: &ClientInitializeError) -> String {
    match error {
        ClientInitializeError::TransportError { error, .. } => transport_error(error),
        other => causes(other),
    }
}

pub(super) fn call_error(error: &ServiceError) -> String {
    match error {
        ServiceError::TransportSend(error) => transport_error(error),
        other => causes(other),
    }
}

/// The library does not give the cause of an HTTP error as its source.
fn transport_error(error: &DynamicTransportError) -> String {
    match error.error.downcast_ref::<StreamableHttpError<reqwest::Error>>() {
        Some(StreamableHttpError::Client(error)) => causes(error),
        _ => causes(&*error.error),
    }
}

/// The key of a server, from `[agent] env` or the environment of Longhaul; `None`: it has no
/// `key_env`.
///
/// # Errors
/// If the variable is not set, or empty.
pub(crate) fn key_of(
    name: &str,
    server: &McpSettings,
    given: impl Fn(&str) -> Option<String>,
) -> Result<Option<String>, Failure> {
    let Some(variable) = server.key_env.as_deref() else { return Ok(None) };
    let value = given(variable).or_else(|| std::env::var(variable).ok());
    let value = value.map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
    value.map(Some).ok_or_else(|| {
        Failure::terminal(format!(
            "the variable `{variable}`, which holds the key of [agent.mcp.{name}], is not set: set \
             it in the environment of longhaul, or in `[agent] env`"
        ))
    })
}
