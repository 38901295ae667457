//! One request and its answer over HTTP.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use chrono::{DateTime, Utc};
use eventsource_stream::{Event, EventStreamError, Eventsource as _};
use futures_util::{Stream, StreamExt as _};
use longhaul_engine::{Attempt, Failure, Payload};
use longhaul_workflows::contracts::{Message, ModelCall, ModelStop};
use longhaul_workflows::settings::{ApiSettings, Protocol};
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Response, StatusCode, Url};
use serde_json::Value;

use super::client::causes;
use super::key::Key;
use super::received::{Reader, Received};
use super::refusal::{Refusal, ServiceError};
use super::{anthropic, anthropic_answer, openai, openai_answer, size, wait};

/// The longest answer with its framing, in bytes.
const LONGEST: usize = 128 * 1024 * 1024;
/// The longest event, in bytes.
const LONGEST_EVENT: usize = 8 * 1024 * 1024;
/// The longest error that is read, in bytes.
const LONGEST_ERROR: usize = 64 * 1024;
/// The wait for the end of a stream after the last event, so that its connection is used again.
const LINGER: Duration = Duration::from_millis(100);

/// A request that is ready to be sent.
pub(super) struct Exchange<'a> {
    pub(super) call: &'a ModelCall,
    pub(super) messages: &'a [Message],
    pub(super) key: &'a Key,
    pub(super) client: Client,
    pub(super) url: Url,
    pub(super) attempt: &'a Attempt,
}

/// An answer, and the service's id of its request.
#[derive(Debug)]
pub(super) struct Answered {
    pub(super) received: Received,
    pub(super) request_id: Option<String>,
    /// The time before which the service accepts no further request, as its headers state.
    pub(super) closed_until: Option<DateTime<Utc>>,
}

/// The URL of a call.
pub(super) fn url(call: &ModelCall) -> Result<Url, Failure> {
    let path = match call.api.protocol {
        Protocol::Anthropic => "v1/messages",
        Protocol::Openai => "v1/chat/completions",
    };
    endpoint(&call.api, path)
}

/// A URL of a provider.
pub(super) fn endpoint(api: &ApiSettings, path: &str) -> Result<Url, Failure> {
    let provider = match api.protocol {
        Protocol::Anthropic => "https://api.anthropic.com",
        Protocol::Openai => "https://api.openai.com",
    };
    let url = Url::parse(api.url.as_deref().unwrap_or(provider)).ok();
    let url = url.filter(|url| matches!(url.scheme(), "http" | "https"));
    let mut url = url.ok_or_else(|| {
        Failure::terminal("`[agent.api] url` is not an HTTP URL, as http://127.0.0.1:8000 is")
    })?;
    // Both forms are in use, with `/v1` and without.
    let base = url.path().trim_end_matches('/');
    let base = base.strip_suffix("/v1").unwrap_or(base).to_owned();
    url.set_path(&format!("{base}/{path}"));
    Ok(url)
}

/// The headers that name the user and the version of the protocol.
pub(super) fn credentials(protocol: Protocol, key: &Key) -> Result<HeaderMap, Failure> {
    let mut headers = HeaderMap::new();
    let (name, prefix) = match protocol {
        Protocol::Anthropic => {
            let version = HeaderValue::from_static(anthropic::VERSION);
            headers.insert(HeaderName::from_static("anthropic-version"), version);
            (HeaderName::from_static("x-api-key"), "")
        }
        Protocol::Openai => (AUTHORIZATION, "Bearer "),
    };
    headers.extend(key.header(prefix)?.map(|value| (name, value)));
    Ok(headers)
}

impl Exchange<'_> {
    /// Sends the request and reads the answer, within the timeout of the call.
    pub(super) async fn perform(&self) -> Result<Answered, Refusal> {
        let timeout = self.call.api.timeout.duration();
        match tokio::time::timeout(timeout, self.send_and_read()).await {
            Ok(outcome) => outcome,
            Err(_) => Err(Refusal::Failure(Failure::retryable(format!(
                "the model did not answer within {} seconds",
                timeout.as_secs()
            )))),
        }
    }

    async fn send_and_read(&self) -> Result<Answered, Refusal> {
        let response = self.send().await?;
        let status = response.status();
        let headers = response.headers().clone();
        if status != StatusCode::OK {
            let body = begin_of(response).await;
            let error = ServiceError { status, headers: &headers, body: &body };
            return Err(error.refusal(self.key));
        }
        let received = self.read(response, &headers).await?;
        let id = ["request-id", "x-request-id"].iter().find_map(|name| headers.get(*name));
        let id = id.and_then(|id| id.to_str().ok());
        let request_id = id.map(|id| self.key.redact(id).chars().take(128).collect());
        let closed_until = wait::exhausted_until(&headers, Utc::now());
        Ok(Answered { received, request_id, closed_until })
    }

    async fn send(&self) -> Result<Response, Failure> {
        let body = self.body().to_string();
        let request = self.client.post(self.url.clone()).headers(self.headers()?).body(body);
        request.send().await.map_err(|error| {
            let cause = self.key.redact(&causes(&error.without_url()));
            let host = self.url.host_str().unwrap_or_default();
            let port = self.url.port_or_known_default().unwrap_or_default();
            Failure::retryable(format!(
                "the model service at {host}:{port} is not reached: {cause}"
            ))
        })
    }

    fn headers(&self) -> Result<HeaderMap, Failure> {
        let mut headers = credentials(self.call.api.protocol, self.key)?;
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        Ok(headers)
    }

    fn body(&self) -> Value {
        let limit = size::output_limit(self.call, self.messages);
        match self.call.api.protocol {
            Protocol::Anthropic => anthropic::body(self.call, self.messages, limit),
            Protocol::Openai => openai::body(self.call, self.messages, limit),
        }
    }

    async fn read(&self, response: Response, headers: &HeaderMap) -> Result<Received, Refusal> {
        let mut reader: Box<dyn Reader> = match self.call.api.protocol {
            Protocol::Anthropic => Box::<anthropic_answer::Answer>::default(),
            Protocol::Openai => Box::<openai_answer::Answer>::default(),
        };
        let waiting = Arc::new(AtomicUsize::new(0));
        let mut events = std::pin::pin!(bounded(response, Arc::clone(&waiting)).eventsource());
        while let Some(event) = events.next().await {
            waiting.store(0, Ordering::Relaxed);
            let event = match event {
                Ok(event) => event,
                Err(_) if reader.is_complete() => break,
                Err(error) => return Err(self.broken(&error).into()),
            };
            self.attempt.heartbeat();
            match self.take(&event, reader.as_mut(), headers)? {
                Next::Continue => {}
                Next::End => {
                    let _ = tokio::time::timeout(LINGER, events.next()).await;
                    break;
                }
            }
        }
        let mut received = reader.finish();
        if received.stop.is_none() {
            return Err(Refusal::Failure(Failure::retryable(
                "the stream of the model's answer ended before the answer did",
            )));
        }
        received.model = self.key.redact(&received.model.chars().take(128).collect::<String>());
        if received.stop == Some(ModelStop::ContextFull) {
            received.blocks.clear();
        }
        Ok(received)
    }

    /// Takes one event.
    fn take(
        &self,
        event: &Event,
        reader: &mut dyn Reader,
        headers: &HeaderMap,
    ) -> Result<Next, Refusal> {
        if event.data == "[DONE]" {
            return Ok(Next::End);
        }
        let Ok(value) = serde_json::from_str::<Value>(&event.data) else {
            return Err(Refusal::Failure(Failure::retryable(
                "the stream of the model's answer is damaged",
            )));
        };
        if event.event == "error" || value.get("error").is_some_and(|error| !error.is_null()) {
            let error = ServiceError { status: StatusCode::OK, headers, body: &event.data };
            return Err(error.refusal(self.key));
        }
        if let Some(live) = reader.read(&value)? {
            self.attempt.emit(Payload::of(&live));
        }
        let is_last = value.get("type").is_some_and(|kind| kind == "message_stop");
        Ok(if is_last { Next::End } else { Next::Continue })
    }

    fn broken(&self, error: &EventStreamError<StreamError>) -> Failure {
        match error {
            EventStreamError::Transport(StreamError::TooLong(limit)) => Failure::terminal(format!(
                "the answer of the model is longer than {limit} bytes with its framing"
            )),
            EventStreamError::Transport(StreamError::Transport(cause)) => {
                let cause = self.key.redact(cause);
                Failure::retryable(format!("the stream of the model's answer broke: {cause}"))
            }
            _ => Failure::retryable("the stream of the model's answer is damaged"),
        }
    }
}

/// Whether more events follow.
#[derive(Debug)]
enum Next {
    Continue,
    End,
}

/// Why a stream cannot be read further.
#[derive(Debug)]
enum StreamError {
    TooLong(usize),
    Transport(String),
}

impl fmt::Display for StreamError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong(limit) => write!(formatter, "more than {limit} bytes"),
            Self::Transport(cause) => formatter.write_str(cause),
        }
    }
}

/// The pieces of a response, within the limits. `waiting` holds the bytes since the last event.
fn bounded(
    response: Response,
    waiting: Arc<AtomicUsize>,
) -> impl Stream<Item = Result<impl AsRef<[u8]>, StreamError>> {
    let mut total = 0;
    response.bytes_stream().map(move |piece| {
        let piece = piece.map_err(|error| StreamError::Transport(causes(&error.without_url())))?;
        total += piece.len();
        let since = waiting.fetch_add(piece.len(), Ordering::Relaxed) + piece.len();
        if total > LONGEST {
            Err(StreamError::TooLong(LONGEST))
        } else if since > LONGEST_EVENT {
            Err(StreamError::TooLong(LONGEST_EVENT))
        } else {
            Ok(piece)
        }
    })
}

/// The begin of the body of an error.
async fn begin_of(mut response: Response) -> String {
    let mut body = Vec::new();
    while let Ok(Some(piece)) = response.chunk().await {
        body.extend_from_slice(&piece);
        if body.len() >= LONGEST_ERROR {
            body.truncate(LONGEST_ERROR);
            break;
        }
    }
    String::from_utf8_lossy(&body).into_owned()
}
