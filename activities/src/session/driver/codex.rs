//! Codex, without a person: `codex app-server`, which speaks JSON-RPC on its standard input and
//! output.
//!
//! A write that its sandbox refuses is a failed command, or no event at all. With the network down
//! it repeats a request for ever, and says so.

mod end;
mod reader;
mod requests;

use super::environment::{AgentEnvironment, mentions};
use super::{Abilities, AgentDriver, Dialogue, Launch, Reader};

use reader::CodexReader;

#[derive(Debug)]
pub(super) struct Codex;

/// Whether these arguments keep Codex from starting a sandbox of its own.
pub(super) fn has_no_sandbox(args: &[String]) -> bool {
    requests::Sandbox::of(args).is_off()
}

impl AgentDriver for Codex {
    fn name(&self) -> &'static str {
        "codex"
    }

    fn abilities(&self) -> Abilities {
        Abilities { chooses_conversation: false, reports_whole_usage: true, has_version: true }
    }

    fn args(&self, launch: &Launch<'_>) -> Vec<String> {
        let mut args = vec!["app-server".to_owned()];
        args.extend(requests::Sandbox::of(launch.args).rest);
        args
    }

    fn env(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    fn pass_env(&self) -> &'static [&'static str] {
        &["CODEX_HOME"]
    }

    fn reader(&self) -> Box<dyn Reader> {
        Box::<CodexReader>::default()
    }

    fn speaker(&self, dialogue: Dialogue) -> Option<Box<dyn Reader>> {
        Some(Box::new(CodexReader::of(&dialogue)))
    }

    fn login(&self) -> &'static str {
        "run `codex login`, or set the variable with the key of its provider in [agent] pass_env"
    }

    fn is_logged_in(&self, given: &AgentEnvironment<'_>) -> Option<bool> {
        let home = given.folder("CODEX_HOME", ".codex");
        let is = given.has("OPENAI_API_KEY")
            || given.has("CODEX_API_KEY")
            || home.join("auth.json").exists();
        // A provider of its own configuration names a variable of its own, or none.
        let has_provider = mentions(&home.join("config.toml"), "model_provider")
            || given.agent.args.iter().any(|arg| arg.contains("model_provider"));
        if is { Some(true) } else { (!has_provider).then_some(false) }
    }
}
