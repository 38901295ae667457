//! Drivers of known agents: command line, events, outcome.
//!
//! | | conversation | resume | usage | full context | cost | stops between actions |
//! |---|---|---|---|---|---|---|
//! | `claude` | chosen | yes | live | typed | yes | yes |
//! | `codex` | reported | yes | live | typed | no | yes |
//! | `opencode` | reported | yes | live | typed | yes | no |
//! | `acp` | reported | if stated | at the end; window live | text | if stated | yes |
//! | `command` | – | no | no | exit code 75 | no | no |
//!
//! Agents change their events between versions, so a reader ignores events and fields that it does
//! not know.

mod acp;
mod boundary;
mod class;
mod claude;
mod codex;
mod command;
mod dialogue;
mod environment;
mod event;
mod handshake;
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

use class::{class_of, class_of_status};
pub(super) use dialogue::{Dialogue, Line, write};
pub(super) use environment::environment;
pub(super) use event::AgentEvent;
pub(super) use preflight::version;
pub use preflight::{Preflight, preflight, settings_problem};
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

    /// A reader that also writes to the agent; `None`: it reads its prompt from standard input.
    fn speaker(&self, _dialogue: Dialogue) -> Option<Box<dyn Reader>> {
        None
    }

    /// The arguments of a command by which the agent creates its own files, if they are missing. It
    /// runs without a sandbox before the first session: inside, the agent could not, and would
    /// stop.
    fn first_start(&self, _given: &environment::AgentEnvironment<'_>) -> &'static [&'static str] {
        &[]
    }

    /// The remedy of a missing login.
    fn login(&self) -> &'static str;

    /// The settings that allow more tools.
    fn permissions(&self) -> &'static str {
        "[agent] args"
    }

    /// Whether a login is visible: `None` if only the agent itself can tell. Reads no secret.
    fn is_logged_in(&self, given: &environment::AgentEnvironment<'_>) -> Option<bool>;
}

/// The abilities of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Abilities {
    /// Longhaul chooses the id of a conversation.
    pub(super) chooses_conversation: bool,
    /// The reported usage includes that of earlier processes of the conversation.
    pub(super) reports_whole_usage: bool,
    /// Its program prints its version for `--version`.
    pub(super) has_version: bool,
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

    /// The lines to write to the agent now.
    fn replies(&mut self) -> Vec<Line> {
        Vec::new()
    }

    /// Ends the turn of the agent between two actions, if it can: with
    /// [`AgentOutcome::StoppedAtBoundary`], or interrupted.
    fn stop_at_boundary(&mut self) {}

    /// Whether the agent works on after the end of its turn.
    fn has_background_work(&self) -> bool {
        false
    }

    /// The line that ends the turn of the agent at once, if it has one.
    fn cancel(&self) -> Option<Line> {
        None
    }
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
        Driver::Acp => Some(&acp::Acp),
        Driver::Command | Driver::Api => None,
    }
}

/// The driver of a name.
fn by_name(name: &str) -> Option<&'static dyn AgentDriver> {
    Driver::ALL.into_iter().filter_map(of).find(|driver| driver.name() == name)
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

#[cfg(test)]
mod tests;
