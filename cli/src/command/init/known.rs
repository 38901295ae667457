//! Command lines of known agents that work without a person: with write permission and with
//! streamed output.

/// A command line, and the environment variables that it needs.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Known {
    pub(super) command: Vec<String>,
    pub(super) pass_env: &'static [&'static str],
}

const AGENTS: [(&[&str], &[&str], &[&str]); 3] = [
    (
        &["claude", "-p"],
        // Without `stream-json` it prints nothing before its end; without the others it may not
        // write.
        &[
            "--output-format",
            "stream-json",
            "--verbose",
            "--permission-mode",
            "acceptEdits",
            "--allowedTools",
            "Bash",
            "Write",
            "Edit",
            "Read",
        ],
        &["ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"],
    ),
    (
        &["codex", "exec"],
        // Without `workspace-write` it can only read.
        &["--json", "--skip-git-repo-check", "--sandbox", "workspace-write", "-"],
        &["OPENAI_API_KEY", "CODEX_HOME"],
    ),
    (
        &["opencode", "run"],
        &["--format", "json"],
        &["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENCODE_CONFIG_CONTENT"],
    ),
];

/// The full command line for an agent given only by its program or its subcommand; `None` for an
/// unknown agent or one with arguments.
pub(super) fn of(words: &[String]) -> Option<Known> {
    let (head, flags, pass_env) = AGENTS.iter().find(|(head, _, _)| {
        let given: Vec<&str> = words.iter().map(String::as_str).collect();
        given == head[..1] || given == **head
    })?;
    Some(Known {
        command: head.iter().chain(*flags).map(|word| (*word).to_owned()).collect(),
        pass_env,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(words: &str, expected: Option<&str>) {
        let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
        assert_eq!(of(&words).map(|known| known.command.join(" ")).as_deref(), expected);
    }

    #[test]
    fn known_agents_get_leave_to_work() {
        let claude = "claude -p --output-format stream-json --verbose --permission-mode acceptEdits --allowedTools Bash \
                      Write Edit Read";
        check("claude", Some(claude));
        check("claude -p", Some(claude));
        check("codex", Some("codex exec --json --skip-git-repo-check --sandbox workspace-write -"));
        check("opencode run", Some("opencode run --format json"));
    }

    #[test]
    fn what_a_person_chose_stays() {
        check("claude -p --model opus", None);
        check("./agent.sh", None);
    }
}
