//! The class of an error that an agent reports as text, or with an HTTP status.

use longhaul_workflows::contracts::AgentOutcome;

/// The class of an error text. Agents report some errors only as text.
pub(super) fn class_of(message: &str) -> AgentOutcome {
    let text = message.to_lowercase();
    let statuses: Vec<u64> = text
        .split(|letter: char| !letter.is_ascii_alphanumeric())
        .filter_map(|word| word.parse().ok())
        .filter(|status| (400..600).contains(status))
        .collect();
    let has = |words: &[&str], codes: &[u64]| {
        words.iter().any(|word| text.contains(word))
            || statuses.iter().any(|status| codes.contains(status))
    };
    match () {
        () if has(&FULL, &[]) => AgentOutcome::ContextFull,
        () if has(&BILLING, &[402]) => AgentOutcome::Billing,
        () if has(&LIMITED, &[429]) => AgentOutcome::RateLimited,
        () if has(&AUTH, &[401, 403]) => AgentOutcome::Auth,
        () if has(&OVERLOADED, &[500, 502, 503, 504, 529]) => AgentOutcome::Overloaded,
        () if has(&["max_output_tokens"], &[]) => AgentOutcome::TurnLimit,
        () if has(&["content policy", "cyber policy", "safety"], &[]) => AgentOutcome::Refused,
        () => AgentOutcome::Protocol,
    }
}

const FULL: [&str; 7] = [
    "ran out of room",
    "prompt is too long",
    "maximum context length",
    "context_length_exceeded",
    "exceed context limit",
    "exceeds the context window",
    "exceeds the maximum number of tokens",
];
const BILLING: [&str; 5] =
    ["quota", "billing", "credit balance", "usage limit", "payment required"];
const LIMITED: [&str; 3] = ["rate limit", "rate_limit", "too many requests"];
const AUTH: [&str; 7] = [
    "unauthorized",
    "not logged in",
    "invalid api key",
    "invalid key",
    "incorrect api key",
    "missing environment variable",
    "authentication",
];
const OVERLOADED: [&str; 12] = [
    "overloaded",
    "high demand",
    "server error",
    "waiting for network",
    "error sending request",
    "connection",
    "unable to connect",
    "stream disconnected",
    "timed out",
    "timeout",
    "econnrefused",
    "fetch failed",
];

/// The class of an HTTP status; a client error of another kind is one of the protocol.
pub(super) fn class_of_status(status: u64, message: &str) -> AgentOutcome {
    match status {
        401 | 403 => AgentOutcome::Auth,
        402 => AgentOutcome::Billing,
        413 => AgentOutcome::ContextFull,
        429 if class_of(message) == AgentOutcome::Billing => AgentOutcome::Billing,
        429 => AgentOutcome::RateLimited,
        408 | 500.. => AgentOutcome::Overloaded,
        _ => match class_of(message) {
            found @ (AgentOutcome::ContextFull | AgentOutcome::Billing) => found,
            _ => AgentOutcome::Protocol,
        },
    }
}
