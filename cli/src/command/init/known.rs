//! The agents with a driver of their own.

/// An agent with a driver, and the environment variables that it needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Known {
    pub(super) driver: &'static str,
    pub(super) pass_env: &'static [&'static str],
}

const AGENTS: [Known; 4] = [
    Known { driver: "claude", pass_env: &["ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"] },
    Known { driver: "codex", pass_env: &["OPENAI_API_KEY", "CODEX_HOME"] },
    Known {
        driver: "opencode",
        pass_env: &["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENCODE_CONFIG_CONTENT"],
    },
    Known { driver: "api", pass_env: &[] },
];

/// The agent that is named by nothing but its driver.
pub(super) fn of(words: &[String]) -> Option<Known> {
    let [name] = words else { return None };
    AGENTS.into_iter().find(|known| known.driver == name)
}

impl Known {
    /// Its lines under `[agent]`.
    pub(super) fn settings(self) -> String {
        let driver = format!("driver = \"{}\"", self.driver);
        if self.driver == "api" {
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
        assert_eq!(of(&words).map(|known| known.driver), expected);
    }

    #[test]
    fn a_name_alone_selects_a_driver() {
        check("claude", Some("claude"));
        check("api", Some("api"));
        check("claude -p --model opus", None);
        check("./agent.sh", None);
    }
}
