//! Drivers of known agents: command line, events, outcome.
//!
//! | | conversation | resume | usage | full context | cost |
//! |---|---|---|---|---|---|
//! | `claude` | chosen | yes | live | typed | yes |
//! | `codex` | reported | yes | at the end | text | no |
//! | `opencode` | reported | yes | live | typed | yes |
//! | `command` | – | no | no | exit code 75 | no |
//!
//! Agents change their events between versions, so a reader ignores events and fields that it does
//! not know.

mod claude;
mod codex;
mod command;
mod event;
mod opencode;
mod preflight;
mod record;
mod transcript;

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use longhaul_engine::Failure;
use longhaul_workflows::contracts::AgentOutcome;
use longhaul_workflows::settings::{AgentSettings, Driver};

pub(super) use event::AgentEvent;
pub use preflight::{Obstacle, Preflight, preflight, settings_problem, why_not};
pub(super) use preflight::{environment, version};
pub(super) use record::{Record, millis};
pub use transcript::Transcript;

/// A known agent.
pub(super) trait AgentDriver: Send + Sync {
    /// Its name in the settings, and that of its program.
    fn name(&self) -> &'static str;

    /// Its abilities.
    fn abilities(&self) -> Abilities;

    /// The arguments of its program.
    fn args(&self, launch: &Launch<'_>) -> Vec<String>;

    /// Variables that it needs, unless the user sets them.
    fn env(&self) -> &'static [(&'static str, &'static str)];

    /// Inherited variables with the place of its login.
    fn pass_env(&self) -> &'static [&'static str];

    /// A reader of its output.
    fn reader(&self) -> Box<dyn Reader>;

    /// The remedy of a missing login.
    fn login(&self) -> &'static str;

    /// Whether a login is visible: `None` if only the agent itself can tell. Reads no secret.
    fn is_logged_in(&self, given: &preflight::Given<'_>) -> Option<bool>;
}

/// The abilities of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Abilities {
    /// Longhaul chooses the id of a conversation.
    pub(super) chooses_conversation: bool,
    /// The reported usage includes that of earlier processes of the conversation.
    pub(super) reports_whole_usage: bool,
}

/// The start of an agent.
#[derive(Debug, Clone, Copy)]
pub(super) struct Launch<'a> {
    pub(super) model: Option<&'a str>,
    /// Further arguments from the settings.
    pub(super) args: &'a [String],
    pub(super) conversation: Conversation<'a>,
    /// The money that it may use, in millionths of a US dollar.
    pub(super) cost_micros: Option<u64>,
}

impl Launch<'_> {
    /// Whether the settings give an option themselves.
    fn sets(&self, options: &[&str]) -> bool {
        sets(self.args, options)
    }
}

/// Whether arguments contain one of these options.
pub(super) fn sets(args: &[String], options: &[&str]) -> bool {
    args.iter().any(|arg| options.contains(&arg.split('=').next().unwrap_or_default()))
}

/// The conversation of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Conversation<'a> {
    /// A new one; with this id, if Longhaul chooses it.
    New(&'a str),
    /// An earlier one goes on.
    Resumed(&'a str),
}

/// Reads the lines of an agent.
pub(super) trait Reader: Send {
    /// The events of a line of its output.
    fn line(&mut self, line: &str) -> Vec<AgentEvent>;
}

/// A failed request, or the end of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct End {
    pub(super) outcome: AgentOutcome,
    /// The text of the agent; empty if it gave none.
    pub(super) message: String,
    /// The delay that the provider asks for.
    pub(super) delay: Option<Duration>,
}

impl End {
    pub(super) fn new(outcome: AgentOutcome, message: impl Into<String>) -> Self {
        Self { outcome, message: message.into(), delay: None }
    }
}

/// The driver of the settings; `None` for a command and for the built-in agent.
pub(super) fn of(driver: Driver) -> Option<&'static dyn AgentDriver> {
    match driver {
        Driver::Claude => Some(&claude::Claude),
        Driver::Codex => Some(&codex::Codex),
        Driver::Opencode => Some(&opencode::Opencode),
        Driver::Command | Driver::Api => None,
    }
}

/// The driver of a name.
fn by_name(name: &str) -> Option<&'static dyn AgentDriver> {
    [Driver::Claude, Driver::Codex, Driver::Opencode]
        .into_iter()
        .filter_map(of)
        .find(|driver| driver.name() == name)
}

/// The program of a known agent and the arguments before those of its driver, resolved from the
/// user's checkout.
pub(super) fn program(
    driver: &dyn AgentDriver,
    agent: &AgentSettings,
    root: &Path,
) -> Result<(OsString, Vec<OsString>), Failure> {
    if agent.command.is_empty() {
        return Ok((driver.name().into(), Vec::new()));
    }
    command::program(&agent.command, root)
}

pub(super) use command::program as command_program;

/// The class of an error text. Agents report some errors only as text.
fn class_of(message: &str) -> AgentOutcome {
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

const FULL: [&str; 6] = [
    "ran out of room",
    "prompt is too long",
    "maximum context length",
    "context_length_exceeded",
    "exceed context limit",
    "exceeds the context window",
];
const BILLING: [&str; 5] =
    ["quota", "billing", "credit balance", "usage limit", "payment required"];
const LIMITED: [&str; 3] = ["rate limit", "rate_limit", "too many requests"];
const AUTH: [&str; 6] = [
    "unauthorized",
    "not logged in",
    "invalid api key",
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
fn class_of_status(status: u64, message: &str) -> AgentOutcome {
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

#[cfg(test)]
mod tests;
