//! The end of a turn.

use std::time::Duration;

use chrono::{DateTime, Utc};
use longhaul_workflows::contracts::AgentOutcome;
use serde_json::Value;

use super::super::event::text;
use super::super::{End, class_of, class_of_status};

/// The end that a result means, after the error of a request, if one was reported.
pub(super) fn of_result(event: &Value, error: Option<&str>, resets_at: Option<i64>) -> End {
    let mut message = text(event, "/result");
    if message.is_empty()
        && let Some(errors) = event["errors"].as_array()
    {
        let errors: Vec<_> = errors.iter().filter_map(Value::as_str).collect();
        message = errors.join("\n");
    }
    let outcome = outcome(event, &message, error);
    if outcome == AgentOutcome::Interrupted {
        // The text is a diagnosis of the program itself.
        message = "interrupted".into();
    }
    let end = End::new(outcome, message);
    match resets_at {
        Some(at) if outcome == AgentOutcome::RateLimited => End { delay: until(at), ..end },
        _ => end,
    }
}

fn outcome(event: &Value, message: &str, error: Option<&str>) -> AgentOutcome {
    let reason = text(event, "/terminal_reason");
    let reason = reason.as_str();
    if !event["is_error"].as_bool().unwrap_or_default() {
        return match (reason, text(event, "/subtype").as_str()) {
            ("aborted_tools" | "aborted_streaming", _) => AgentOutcome::Interrupted,
            ("hook_stopped", _) => AgentOutcome::StoppedAtBoundary,
            (_, "success") => AgentOutcome::Completed,
            (_, subtype) => limit(subtype).unwrap_or(AgentOutcome::Protocol),
        };
    }
    if let Some(limit) = limit(&text(event, "/subtype")) {
        return limit;
    }
    if text(event, "/stop_reason") == "refusal" {
        return AgentOutcome::Refused;
    }
    match error {
        Some("billing_error") => return AgentOutcome::Billing,
        Some("authentication_failed") => return AgentOutcome::Auth,
        _ => {}
    }
    match reason {
        "prompt_too_long" | "rapid_refill_breaker" | "blocking_limit" => {
            return AgentOutcome::ContextFull;
        }
        "aborted_tools" | "aborted_streaming" => return AgentOutcome::Interrupted,
        "max_turns" => return AgentOutcome::TurnLimit,
        "budget_exhausted" => return AgentOutcome::Budget,
        // A tool gave more than a request may hold; the same request fails again.
        "image_error" => return AgentOutcome::ContextFull,
        _ => {}
    }
    match event.get("api_error_status").and_then(Value::as_u64) {
        Some(status) => class_of_status(status, message),
        None => class_of(message),
    }
}

/// The outcome of a limit that the command line set.
fn limit(subtype: &str) -> Option<AgentOutcome> {
    match subtype {
        "error_max_turns" => Some(AgentOutcome::TurnLimit),
        "error_max_budget_usd" => Some(AgentOutcome::Budget),
        _ => None,
    }
}

/// The delay until a time in seconds since 1970.
fn until(at: i64) -> Option<Duration> {
    (DateTime::from_timestamp(at, 0)? - Utc::now()).to_std().ok()
}
