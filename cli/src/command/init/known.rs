//! The agents with a driver of their own.

use longhaul_workflows::settings::Driver;

/// An agent with a driver, and the variables that `init` writes as `pass_env`: those of its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Known {
    pub(super) driver: Driver,
    pub(super) key_variables: &'static [&'static str],
}

const AGENTS: [Known; 4] = [
    Known { driver: Driver::Claude, key_variables: &["ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"] },
    Known { driver: Driver::Codex, key_variables: &["OPENAI_API_KEY", "CODEX_HOME"] },
    Known {
        driver: Driver::Opencode,
        key_variables: &["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENCODE_CONFIG_CONTENT"],
    },
    Known { driver: Driver::Api, key_variables: &[] },
];

/// The agent that is named by nothing but its driver.
pub(super) fn of(words: &[String]) -> Option<Known> {
    let [name] = words else { return None };
    AGENTS.into_iter().find(|known| known.driver.as_str() == name)
}

impl Known {
    /// Its lines under `[agent]`.
    pub(super) fn settings(self) -> String {
        let driver = format!("driver = \"{}\"", self.driver.as_str());
        if self.driver == Driver::Api {
            return format!(
                "{driver}\nmodel = \"\"    # the name of a model; see also [agent.api]"
            );
        }
        driver
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(words: &str, expected: Option<&str>) {
        let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
        assert_eq!(of(&words).map(|known| known.driver.as_str()), expected);
    }

    #[test]
    fn a_name_alone_selects_a_driver() {
        check("claude", Some("claude"));
        check("api", Some("api"));
        check("claude -p --model opus", None);
        check("./agent.sh", None);
    }
}
