//! The end of a turn.

use longhaul_workflows::contracts::AgentOutcome;
use serde_json::Value;

use super::super::event::text;
use super::super::{End, class_of, class_of_status};

/// The end that a turn states.
pub(super) fn of_turn(turn: &Value) -> End {
    match text(turn, "/status").as_str() {
        "completed" => End::new(AgentOutcome::Completed, ""),
        "interrupted" => End::new(AgentOutcome::Interrupted, "the turn was interrupted"),
        _ => of_error(&turn["error"]),
    }
}

/// The end that an error means.
pub(super) fn of_error(error: &Value) -> End {
    let mut message = text(error, "/message");
    let details = text(error, "/additionalDetails");
    if !details.is_empty() {
        message = format!("{message}: {details}");
    }
    End::new(outcome(&error["codexErrorInfo"], &message), message)
}

fn outcome(info: &Value, message: &str) -> AgentOutcome {
    let kind = info.as_str().or_else(|| info.as_object()?.keys().next().map(String::as_str));
    let status = info.as_object().and_then(|kinds| kinds.values().next());
    let status = status.and_then(|kind| kind["httpStatusCode"].as_u64());
    if let Some(status) = status {
        return class_of_status(status, message);
    }
    match kind {
        Some("contextWindowExceeded") => AgentOutcome::ContextFull,
        Some("sessionBudgetExceeded") => AgentOutcome::Budget,
        Some("usageLimitExceeded") => AgentOutcome::Billing,
        Some("rateLimitExceeded" | "responseTooManyFailedAttempts") => AgentOutcome::RateLimited,
        Some(
            "serverOverloaded"
            | "flexUnavailable"
            | "policyCapacityUnavailable"
            | "internalServerError"
            | "httpConnectionFailed"
            | "responseStreamConnectionFailed"
            | "responseStreamDisconnected",
        ) => AgentOutcome::Overloaded,
        Some("unauthorized") => AgentOutcome::Auth,
        Some("cyberPolicy" | "misalignmentPolicyViolation" | "inferenceHookDenied") => {
            AgentOutcome::Refused
        }
        _ => class_of(message),
    }
}
