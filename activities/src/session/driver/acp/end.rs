//! The end of a turn: the protocol's reasons to stop, and the details that agents add to an error.

use std::time::Duration;

use longhaul_workflows::contracts::{AgentOutcome, Usage};
use serde_json::Value;

use super::super::event::{number, text};
use super::super::{End, class_of, class_of_status};
use super::update::Turn;

/// The code of the protocol for a missing login.
const LOGIN_REQUIRED: i64 = -32000;

/// The end that a reason to stop means.
pub(super) fn of_stop(reason: &str, turn: &Turn) -> End {
    match reason {
        // Some agents end a failed turn as any other, and say why in their last message.
        "end_turn" if turn.is_broken => End::new(class_of(&turn.last), turn.last.trim()),
        "end_turn" => End::new(AgentOutcome::Completed, turn.last.trim()),
        "max_tokens" => End::new(AgentOutcome::TurnLimit, "the answer reached its length limit"),
        "max_turn_requests" => {
            End::new(AgentOutcome::TurnLimit, "it reached its limit of requests")
        }
        "refusal" => End::new(AgentOutcome::Refused, "the model refused"),
        "cancelled" => End::new(AgentOutcome::Interrupted, "the turn was cancelled"),
        _ => End::new(AgentOutcome::Protocol, format!("it stopped, `{reason}`")),
    }
}

/// The end that an error of a request means.
pub(super) fn of_error(error: &Value) -> End {
    let message = text(error, "/message");
    let message = message.strip_prefix("Internal error: ").unwrap_or(&message);
    let code = error["code"].as_i64().unwrap_or_default();
    let status = error.pointer("/data/statusCode").or_else(|| error.pointer("/data/status"));
    let status = status.and_then(Value::as_u64).or_else(|| u64::try_from(code).ok());
    let outcome = match kind(&error["data"]) {
        Some(outcome) => outcome,
        None if code == LOGIN_REQUIRED => AgentOutcome::Auth,
        None => match status.filter(|status| (400..600).contains(status)) {
            Some(status) => class_of_status(status, message),
            None => class_of(message),
        },
    };
    End { delay: delay(&error["data"]), ..End::new(outcome, message) }
}

/// The kind of an error in the words of claude-agent-acp and opencode.
fn kind(data: &Value) -> Option<AgentOutcome> {
    let name = [text(data, "/errorKind"), text(data, "/errorName")].concat();
    Some(match name.as_str() {
        "rate_limit" => AgentOutcome::RateLimited,
        "overloaded" | "server_error" => AgentOutcome::Overloaded,
        "authentication_failed" | "oauth_org_not_allowed" | "ProviderAuthError" => {
            AgentOutcome::Auth
        }
        "billing_error" => AgentOutcome::Billing,
        "max_output_tokens" | "MessageOutputLengthError" => AgentOutcome::TurnLimit,
        "ContextOverflowError" => AgentOutcome::ContextFull,
        "MessageAbortedError" => AgentOutcome::Interrupted,
        _ => return None,
    })
}

/// The delay that an agent passes on, in seconds.
fn delay(data: &Value) -> Option<Duration> {
    let seconds = ["retryAfter", "retry_after"].iter().find_map(|name| data.get(name)?.as_f64())?;
    Duration::try_from_secs_f64(seconds).ok()
}

/// The tokens of a turn; cached ones are counted apart.
pub(super) fn usage(result: &Value) -> Option<Usage> {
    if let Some(usage) = result.get("usage").filter(|usage| usage.is_object()) {
        return Some(Usage {
            input: number(usage, "/inputTokens"),
            output: number(usage, "/outputTokens"),
            cache_read: number(usage, "/cachedReadTokens"),
            cache_write: number(usage, "/cachedWriteTokens"),
        });
    }
    let count = result.pointer("/_meta/quota/token_count")?;
    let input = number(count, "/input_tokens");
    let output = number(count, "/output_tokens");
    Some(Usage { input, output, ..Usage::default() })
}
