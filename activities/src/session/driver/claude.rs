//! Claude Code, without a person: `claude -p` with `stream-json` as its input and its output.
//!
//! A process can have several turns, each with a `result`; the last one counts. Since 2.1.3xx
//! `terminal_reason` names the cause of an error; earlier versions say `completed` even then. So
//! `is_error` and `api_error_status` are read first.

mod control;
mod end;
mod reader;
mod window;

use longhaul_workflows::resources::usd;

use super::environment::{AgentEnvironment, mentions};
use super::{Abilities, AgentDriver, Conversation, Dialogue, Launch, Reader};

use reader::ClaudeReader;

#[derive(Debug)]
pub(super) struct Claude;

/// A login is in one of these variables.
const KEYS: [&str; 7] = [
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "CLAUDE_CODE_USE_BEDROCK",
    "CLAUDE_CODE_USE_VERTEX",
    "CLAUDE_CODE_USE_FOUNDRY",
    "ANTHROPIC_BASE_URL",
];

impl AgentDriver for Claude {
    fn name(&self) -> &'static str {
        "claude"
    }

    fn abilities(&self) -> Abilities {
        Abilities { chooses_conversation: true, reports_whole_usage: false, has_version: true }
    }

    fn args(&self, launch: &Launch<'_>) -> Vec<String> {
        let mut args: Vec<&str> = vec![
            "-p",
            "--input-format",
            "stream-json",
            "--output-format",
            "stream-json",
            "--verbose",
        ];
        // Without these, each write is refused.
        if !launch.sets(&["--allowedTools", "--allowed-tools"]) {
            args.extend(["--allowedTools", "Bash,Write,Edit,Read"]);
        }
        if !launch.sets(&["--permission-mode", "--dangerously-skip-permissions"]) {
            args.extend(["--permission-mode", "acceptEdits"]);
        }
        if let Some(model) = launch.model {
            args.extend(["--model", model]);
        }
        let limit = launch.cost_micros.map(usd).filter(|_| !launch.sets(&["--max-budget-usd"]));
        if let Some(limit) = &limit {
            args.extend(["--max-budget-usd", limit]);
        }
        match launch.conversation {
            Conversation::New(id) => args.extend(["--session-id", id]),
            Conversation::Resumed(id) => args.extend(["--resume", id]),
        }
        args.into_iter().map(str::to_owned).chain(launch.args.iter().cloned()).collect()
    }

    fn env(&self) -> &'static [(&'static str, &'static str)] {
        &[
            ("DISABLE_AUTOUPDATER", "1"),
            // Longhaul waits for the provider, with durable timers.
            ("CLAUDE_CODE_MAX_RETRIES", "2"),
            // A fresh session continues when the context is full.
            ("DISABLE_AUTO_COMPACT", "1"),
            // A command in the background would start a turn of its own.
            ("CLAUDE_CODE_DISABLE_BACKGROUND_TASKS", "1"),
        ]
    }

    fn pass_env(&self) -> &'static [&'static str] {
        &["CLAUDE_CONFIG_DIR"]
    }

    fn reader(&self) -> Box<dyn Reader> {
        Box::<ClaudeReader>::default()
    }

    fn speaker(&self, dialogue: Dialogue) -> Option<Box<dyn Reader>> {
        Some(Box::new(ClaudeReader::of(dialogue)))
    }

    fn login(&self) -> &'static str {
        "run `claude /login`, or set ANTHROPIC_API_KEY in [agent] pass_env"
    }

    fn is_logged_in(&self, given: &AgentEnvironment<'_>) -> Option<bool> {
        let config = given.folder("CLAUDE_CONFIG_DIR", ".claude");
        let has_helper = || mentions(&config.join("settings.json"), "apiKeyHelper");
        let is = KEYS.iter().any(|key| given.has(key))
            || config.join(".credentials.json").exists()
            || has_helper();
        // On macOS the login is in the keychain.
        if is { Some(true) } else { cfg!(target_os = "linux").then_some(false) }
    }
}
