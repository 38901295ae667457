//! Errors of model services, classified by the type that they name, then by the HTTP status. An
//! error may also arrive in a stream, after status 200.

use chrono::Utc;
use longhaul_engine::Failure;
use longhaul_workflows::contracts::CallModel;
use reqwest::StatusCode;
use reqwest::header::HeaderMap;
use serde_json::Value;

use super::key::Key;
use super::wait;

/// The most characters of a service's message that are quoted.
const QUOTED: usize = 500;

/// Codes and types of a conversation that does not fit.
const FULL: [&str; 3] =
    ["context_length_exceeded", "exceed_context_size_error", "request_too_large"];
/// Parts of messages of the same meaning, for services without a code of their own.
const FULL_MESSAGES: [&str; 14] = [
    "prompt is too long",
    "exceed context limit",
    "input is too long for requested model",
    "maximum context length",
    "exceeds the context window",
    "exceeds the available context size",
    "context length exceeded",
    "context_length_exceeded",
    "greater than the context length",
    "longer than the model's context length",
    "context window exceeds limit",
    "reduce the length of the messages",
    "maximum prompt length is",
    // A request over the limit per minute never succeeds, however long the wait.
    "request too large for",
];
const BILLING: [&str; 4] =
    ["billing_error", "insufficient_quota", "billing_hard_limit_reached", "billing_not_active"];
const BILLING_MESSAGES: [&str; 2] = ["credit balance is too low", "insufficient balance"];
const AUTH: [&str; 5] = [
    "authentication_error",
    "permission_error",
    "invalid_api_key",
    "invalid_authentication",
    "AuthenticationError",
];
const LIMITED: [&str; 4] =
    ["rate_limit_error", "rate_limit_exceeded", "too_many_requests", "RateLimitError"];
const PASSING: [&str; 8] = [
    "overloaded_error",
    "api_error",
    "timeout_error",
    "conflict_error",
    "server_error",
    "internal_server_error",
    "InternalServerError",
    "engine_overloaded_error",
];
const LASTING: [&str; 4] =
    ["invalid_request_error", "not_found_error", "BadRequestError", "NotFoundError"];

/// Why there is no answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The conversation does not fit the window.
    ContextFull,
    /// Any other reason.
    Failure(Failure),
}

impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Self {
        Self::Failure(failure)
    }
}

/// An error as a service sent it.
#[derive(Debug)]
pub(super) struct ServiceError<'a> {
    /// The HTTP status; 200 for an error in a stream.
    pub(super) status: StatusCode,
    pub(super) headers: &'a HeaderMap,
    pub(super) body: &'a str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    ContextFull,
    Auth,
    Billing,
    Limited,
    Passing,
    Lasting,
}

impl ServiceError<'_> {
    /// The refusal that it means. No part of the key is in its text.
    pub(super) fn refusal(&self, key: &Key) -> Refusal {
        let said = ErrorBody::read(self.body);
        let class = self.class(&said);
        if class == Class::ContextFull {
            return Refusal::ContextFull;
        }
        let named = key.redact(&said.named(self.status));
        // Services repeat parts of a refused key in the message.
        if class == Class::Auth {
            let message = format!("the model service refuses the key ({named})");
            return Failure::terminal(message).with_code(CallModel::AUTH).into();
        }
        let quoted = key.redact(&plain(&said.message));
        let message = format!("the model service answered {named}: {quoted}");
        Refusal::Failure(match class {
            Class::Billing => Failure::terminal(message).with_code(CallModel::BILLING),
            Class::Limited => Failure::rate_limited(wait::until(self.headers, Utc::now()), message),
            Class::Passing => Failure::retryable(message),
            _ => Failure::terminal(message),
        })
    }

    fn class(&self, said: &ErrorBody) -> Class {
        let names = |known: &[&str]| known.iter().any(|name| said.kinds.iter().any(|k| k == name));
        let message = said.message.to_lowercase();
        let says = |known: &[&str]| known.iter().any(|part| message.contains(part));
        let status = self.status.as_u16();
        if names(&FULL) {
            Class::ContextFull
        } else if names(&BILLING) || status == 402 || says(&BILLING_MESSAGES) {
            Class::Billing
        } else if names(&AUTH) || matches!(status, 401 | 403) {
            Class::Auth
        } else if says(&FULL_MESSAGES) || status == 413 {
            Class::ContextFull
        } else if names(&LIMITED) || status == 429 {
            Class::Limited
        } else if names(&PASSING) {
            Class::Passing
        } else if names(&LASTING) {
            Class::Lasting
        } else {
            self.class_by_status()
        }
    }

    fn class_by_status(&self) -> Class {
        let advice = self.headers.get("x-should-retry").and_then(|value| value.to_str().ok());
        match (advice, self.status.as_u16()) {
            (Some("false"), _) => Class::Lasting,
            (Some("true"), _) | (_, 200 | 408 | 409 | 425 | 500..) => Class::Passing,
            _ => Class::Lasting,
        }
    }
}

/// The parts of an error's JSON.
#[derive(Debug, Default)]
struct ErrorBody {
    /// Its type and its code, if they are names.
    kinds: Vec<String>,
    message: String,
}

impl ErrorBody {
    /// Reads `{"error": {…}}`, `{"error": "…"}`, the older form of vLLM with the fields at the top,
    /// or any text.
    fn read(body: &str) -> Self {
        let Ok(value) = serde_json::from_str::<Value>(body) else {
            return Self { kinds: Vec::new(), message: body.to_owned() };
        };
        let error = value.get("error").filter(|error| !error.is_null()).unwrap_or(&value);
        let text = |key: &str| error.get(key).and_then(Value::as_str).map(str::to_owned);
        let message = text("message")
            .or_else(|| error.as_str().map(str::to_owned))
            .unwrap_or_else(|| error.to_string());
        Self { kinds: text("type").into_iter().chain(text("code")).collect(), message }
    }

    /// The status and the type.
    fn named(&self, status: StatusCode) -> String {
        let kind = self.kinds.first().map(|kind| format!(" {}", plain(kind)));
        let kind = kind.unwrap_or_default();
        if status == StatusCode::OK {
            format!("an error in its stream{kind}")
        } else {
            format!("{}{kind}", status.as_u16())
        }
    }
}

/// The begin of a foreign text, in one line.
fn plain(text: &str) -> String {
    let line = |letter: char| if letter.is_control() { ' ' } else { letter };
    let mut plain: String = text.trim().chars().take(QUOTED).map(line).collect();
    if plain.len() < text.trim().len() {
        plain.push('…');
    }
    plain
}
