//! The environment and the settings of an agent, as a check of its login sees them.

use std::fs;
use std::path::{Path, PathBuf};

use longhaul_workflows::settings::AgentSettings;

use crate::process::Environment;

use super::AgentDriver;

/// The environment and the settings of an agent.
#[derive(Debug)]
pub(in crate::session) struct AgentEnvironment<'a> {
    pub(super) agent: &'a AgentSettings,
    pub(super) env: Environment,
}

impl AgentEnvironment<'_> {
    /// Whether the agent gets a variable with a value.
    pub(super) fn has(&self, name: &str) -> bool {
        self.agent.env.contains_key(name) || self.env.get(name).is_some_and(|it| !it.is_empty())
    }

    /// The directory that a variable names, or one in the home directory.
    pub(super) fn folder(&self, variable: &str, in_home: &str) -> PathBuf {
        match self.env.get(variable).filter(|value| !value.is_empty()) {
            Some(value) => value.into(),
            None => Path::new(self.env.get("HOME").unwrap_or_default()).join(in_home),
        }
    }
}

/// Whether a settings file mentions a word.
pub(super) fn mentions(file: &Path, word: &str) -> bool {
    fs::read_to_string(file).is_ok_and(|text| text.contains(word))
}

/// The inherited environment of an agent; the values of `[agent] env` are not in it.
pub(in crate::session) fn environment(
    driver: &dyn AgentDriver,
    agent: &AgentSettings,
) -> Environment {
    let own = driver.pass_env().iter().map(|name| (*name).to_owned());
    let names: Vec<String> = agent.pass_env.iter().cloned().chain(own).collect();
    let defaults = driver.env().iter().copied();
    let env = Environment::chosen(&names);
    defaults.fold(
        env,
        |env, (name, value)| {
            if env.get(name).is_some() { env } else { env.with(name, value) }
        },
    )
}
