//! `longhaul.toml`: the settings of a project, with defaults.

use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, de};

use crate::backlog::Check;
use crate::resources::Resources;

mod acp;
mod agent;
mod budget;
mod env;
mod sandbox;

pub use acp::{AcpSettings, ToolKind};
pub use agent::{
    AgentSettings, ApiSettings, ContextSettings, Driver, HookSettings, McpSettings, Protocol,
};
pub use budget::{BudgetSettings, Usd};
pub use env::{EnvSource, literal_env};
pub use sandbox::{Confinement, NetworkAccess, SandboxMode};

/// The settings of a project, as `longhaul.toml` writes them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// The repository and its list.
    pub project: ProjectSettings,
    /// The agent: a table, or the name of a driver.
    #[serde(deserialize_with = "agent::by_name_or_table")]
    pub agent: AgentSettings,
    /// Gates: checks that every feature must pass besides its own, in this order.
    #[serde(rename = "gate")]
    pub gates: Vec<Check>,
    /// The check that runs before each agent; if it fails, repair comes first.
    pub baseline: Vec<Check>,
    /// When to give up on a feature.
    pub limits: Limits,
    /// The resources that all sessions of the project may use.
    #[serde(skip_serializing_if = "is_default")]
    pub budget: BudgetSettings,
    /// How work is integrated.
    pub merge: MergeSettings,
}

/// `[project]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ProjectSettings {
    /// The target branch; by default the one that is checked out when the project first runs.
    pub target: Option<String>,
    /// The feature list, relative to the root of the repository.
    pub list: String,
    /// The set-up script, relative to the root of the repository.
    pub setup: String,
    /// The timeout of the set-up script.
    pub setup_timeout: Seconds,
    /// Patterns, as in `.gitignore`, of ignored files that stay in the tree of the checks from one
    /// commit to the next, such as `target/`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub keep_ignored: Vec<String>,
    /// The most features in progress at once.
    pub parallel: u32,
    /// Globs of further files that an agent may not change.
    pub protected: Vec<String>,
    /// Names of environment variables passed to the set-up script and the checks besides the usual
    /// ones.
    pub pass_env: Vec<String>,
    /// The directory of held-out checks, outside of the repository: relative to its root, or
    /// absolute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hidden_checks: Option<String>,
    /// The network access of the set-up script and the checks.
    #[serde(skip_serializing_if = "is_default")]
    pub network: NetworkAccess,
}

impl Default for ProjectSettings {
    fn default() -> Self {
        Self {
            target: None,
            list: "feature_list.json".into(),
            setup: "init.sh".into(),
            setup_timeout: Seconds(600),
            keep_ignored: Vec::new(),
            parallel: 4,
            protected: Vec::new(),
            pass_env: Vec::new(),
            hidden_checks: None,
            network: NetworkAccess::On,
        }
    }
}

impl Settings {
    /// The access of the set-up script and the checks to network and files.
    pub fn gate_confinement(&self) -> Confinement {
        let held_out = self.project.hidden_checks.clone();
        Confinement { network: self.project.network, held_out, ..self.agent.confinement() }
    }

    /// A value that no project can work with.
    pub fn problem(&self) -> Option<String> {
        let leads_out =
            |glob: &&String| glob.starts_with('/') || glob.split('/').any(|part| part == "..");
        if let Some(glob) = self.project.protected.iter().find(leads_out) {
            return Some(format!(
                "`protected`: `{glob}` leads out of the repository; write a path in it"
            ));
        }
        let checks = self.gates.iter().map(|check| ("gate", check));
        let checks = checks.chain(self.baseline.iter().map(|check| ("baseline", check)));
        checks.into_iter().find_map(|(kind, Check { name, run, timeout_seconds, .. })| {
            if run.trim().is_empty() {
                return Some(format!("[[{kind}]] `{name}`: `run` is empty; write a command"));
            }
            (*timeout_seconds == Some(0))
                .then(|| format!("[[{kind}]] `{name}`: `timeout_seconds` must be above 0"))
        })
    }

    /// Globs of the protected files: the list, the settings, the acceptance scripts, and additions
    /// of the settings.
    pub fn protected(&self) -> Vec<String> {
        let fixed = [self.project.list.as_str(), "longhaul.toml", "acceptance/**"];
        fixed.into_iter().map(str::to_owned).chain(self.project.protected.iter().cloned()).collect()
    }
}

pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// `[limits]`: per run of a feature.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// The most sessions.
    pub sessions: u32,
    /// The most failed sessions.
    pub failed_sessions: u32,
    /// The most sessions in a row that change nothing, although none of them failed.
    pub unchanged_sessions: u32,
    /// The most failures of the gates.
    pub failed_gates: u32,
    /// The most merge conflicts.
    pub conflicts: u32,
    /// The most answers of a model in all sessions, if its agent counts them.
    pub turns: u32,
    /// The most tokens in all sessions that are not read from a cache, if its agent counts them.
    pub tokens: u64,
    /// The most money for all sessions, in US dollars, if the agent states its cost or the model
    /// has a price.
    pub cost: Usd,
    /// The most time of all sessions, without waits for people.
    pub time: Seconds,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            sessions: 20,
            failed_sessions: 3,
            unchanged_sessions: 4,
            failed_gates: 5,
            conflicts: 5,
            turns: 2000,
            tokens: 20_000_000,
            cost: Usd::whole(100),
            time: Seconds(7 * 86_400),
        }
    }
}

impl Limits {
    /// The resources that the sessions of one run may use.
    pub fn resources(&self) -> Resources {
        Resources {
            turns: self.turns,
            tokens: self.tokens,
            cost_micros: self.cost.0,
            time_ms: self.time.millis(),
        }
    }
}

/// How finished work enters the target branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MergeStyle {
    /// One commit a feature; the agent's own commits are kept under `refs/longhaul/features/<run>`.
    #[default]
    Squash,
    /// A merge commit, with the agent's commits as its second parent.
    Merge,
}

/// `[merge]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub struct MergeSettings {
    /// How finished work enters the target branch.
    pub style: MergeStyle,
    /// The features whose checks run again on the merged result, besides its own.
    pub regression: Regression,
    /// Whether a person must approve each merge; a feature can require it for itself.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub approval: bool,
    /// Whether gates run again on a merged result with the same content as the work on which they
    /// passed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub repeat_gates: bool,
}

/// The features that a merge could break.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Regression {
    /// All passed features.
    #[default]
    All,
    /// Features that changed a common file.
    Touched,
    /// None: only the gates of the project and the feature's own checks.
    None,
}

/// A duration: `90` (seconds), `"90s"`, `"15m"`, `"2h"`, `"1d"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Seconds(pub u64);

impl Seconds {
    /// As a duration.
    pub fn duration(self) -> std::time::Duration {
        std::time::Duration::from_secs(self.0)
    }

    /// In milliseconds.
    pub fn millis(self) -> u64 {
        self.0.saturating_mul(1000)
    }

    fn wrong(text: &str) -> String {
        format!("`{text}` is no length of time; write 90, \"90s\", \"15m\", \"2h\" or \"1d\"")
    }

    fn parse(text: &str) -> Option<u64> {
        let text = text.trim();
        let (number, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit())?);
        let factor = match unit.trim() {
            "s" => 1,
            "m" | "min" => 60,
            "h" => 3600,
            "d" => 86_400,
            _ => return None,
        };
        number.parse::<u64>().ok()?.checked_mul(factor)
    }
}

impl<'de> Deserialize<'de> for Seconds {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            Number(u64),
            Text(String),
        }
        match Written::deserialize(deserializer)? {
            Written::Number(seconds) => Ok(Self(seconds)),
            Written::Text(text) => {
                let seconds = Self::parse(&text).map(Self);
                seconds.ok_or_else(|| de::Error::custom(Self::wrong(&text)))
            }
        }
    }
}

impl FromStr for Seconds {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let seconds = text.parse().ok().or_else(|| Self::parse(text));
        seconds.map(Self).ok_or_else(|| Self::wrong(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_time_are_numbers_or_texts_with_a_unit() {
        for (text, seconds) in
            [("90s", Some(90)), ("15m", Some(900)), ("2h", Some(7200)), ("x", None), ("5y", None)]
        {
            assert_eq!(Seconds::parse(text), seconds, "{text}");
        }
    }
}
