//! The agents with a driver of their own.

use longhaul_workflows::settings::Driver;

/// An agent with a driver, and the variables that `init` writes as `pass_env`: those of its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Known {
    pub(super) driver: Driver,
    pub(super) key_variables: &'static [&'static str],
}

const AGENTS: [Known; 5] = [
    Known { driver: Driver::Claude, key_variables: &["ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"] },
    Known { driver: Driver::Codex, key_variables: &["OPENAI_API_KEY", "CODEX_HOME"] },
    Known {
        driver: Driver::Opencode,
        key_variables: &["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENCODE_CONFIG_CONTENT"],
    },
    Known { driver: Driver::Api, key_variables: &[] },
    Known { driver: Driver::Acp, key_variables: &[] },
];

/// The agent that is named by its driver. Nothing follows the name but for `acp`, which is any
/// program that speaks the protocol.
///
/// # Errors
/// `acp` without a program.
pub(super) fn of(words: &[String]) -> Result<Option<Known>, String> {
    let [name, rest @ ..] = words else { return Ok(None) };
    let known = AGENTS.into_iter().find(|known| known.driver.as_str() == name);
    match known {
        Some(known) if (known.driver == Driver::Acp) != rest.is_empty() => Ok(Some(known)),
        Some(known) if known.driver == Driver::Acp => {
            Err("`acp` needs the command of the agent: --agent \"acp gemini --acp\"".to_owned())
        }
        _ => Ok(None),
    }
}

impl Known {
    /// Its lines under `[agent]`. `words` are the whole agent.
    pub(super) fn settings(self, words: &[String]) -> String {
        let driver = format!("driver = \"{}\"", self.driver.as_str());
        match self.driver {
            Driver::Api => {
                format!("{driver}\nmodel = \"\"    # the name of a model; see also [agent.api]")
            }
            Driver::Acp => {
                let command = serde_json::Value::from(words.get(1..).unwrap_or_default());
                format!("{driver}\ncommand = {command}")
            }
            _ => driver,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(words: &str, expected: Option<&str>) {
        let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
        let known = of(&words).unwrap();
        assert_eq!(known.map(|known| known.driver.as_str()), expected);
    }

    #[test]
    fn a_name_alone_selects_a_driver() {
        check("claude", Some("claude"));
        check("api", Some("api"));
        check("claude -p --model opus", None);
        check("./agent.sh", None);
        check("acp gemini --acp", Some("acp"));
        assert!(of(&["acp".to_owned()]).unwrap_err().contains("needs the command"));
    }

    #[test]
    fn the_settings_of_an_acp_agent_have_its_command() {
        let words = ["acp", "gemini", "--acp"].map(str::to_owned);
        let settings = of(&words).unwrap().unwrap().settings(&words);
        assert_eq!(settings, "driver = \"acp\"\ncommand = [\"gemini\",\"--acp\"]");
    }
}
