//! The help pages: commands by group, and examples.

use std::fmt::Write as _;

use clap::{Command, CommandFactory};

use super::Arguments;

/// The commands by group, in the order of the help page.
const GROUPS: &[(&str, &[&str])] = &[
    ("Run", &["init", "run", "agent", "batch", "feature", "demo"]),
    (
        "Look",
        &[
            "status", "watch", "list", "why", "describe", "history", "logs", "session", "tree",
            "graph", "usage",
        ],
    ),
    (
        "Steer",
        &[
            "pause",
            "resume",
            "cancel",
            "terminate",
            "approve",
            "deny",
            "answer",
            "steer",
            "signal",
            "reconcile",
        ],
    ),
    ("Go back", &["fork", "restart", "rollback", "checkpoint", "checkpoints"]),
    ("Maintain", &["doctor", "check", "replay", "prune", "export", "import", "backup", "restore"]),
    ("Other", &["schema", "completions", "bench", "help"]),
];

/// The examples of each command: a command line, and its effect.
const EXAMPLES: &[(&str, &[(&str, &str)])] = &[
    (
        "init",
        &[
            ("init . --agent claude", "this repository, with the agent of Claude Code"),
            ("init shop --agent \"./agent.sh --fast\"", "any program with its arguments"),
        ],
    ),
    (
        "run",
        &[
            ("run", "the project here"),
            ("run shop api --max-agents 4", "two projects with four agents in all"),
            ("run shop -o json", "the final status for programs"),
        ],
    ),
    (
        "agent",
        &[
            ("agent orchestrate login", "one feature, over as many sessions as it needs"),
            ("agent run shop --feature login --resume", "the same, after it was blocked"),
            ("agent run shop --session shop-1a2b3c/login/1/2", "a new run from that session on"),
            ("agent sessions shop --prune --yes", "drop the histories of old runs"),
        ],
    ),
    (
        "batch",
        &[
            ("batch night.toml", "all projects of the file; repeat it to continue"),
            ("batch night.toml --detach", "in the background"),
            ("batch status night", "the state of the batch with this id"),
            ("batch night.toml --junit report.xml", "a report for CI"),
        ],
    ),
    ("status", &[("status shop", "one project"), ("status shop -o json", "for programs")]),
    ("watch", &[("watch shop", "features, log and transcript on a full screen")]),
    (
        "feature",
        &[
            ("feature add login \"Log in\" --check \"sh login.sh\"", "a new feature"),
            ("feature import tasks.md --dry-run", "the features of another tool"),
            ("feature next", "the features that are ready"),
        ],
    ),
    (
        "list",
        &[
            ("list --status blocked", "the runs that need a person"),
            ("list --project shop -o ids", "ids for other commands"),
            ("list --kind project", "the projects"),
        ],
    ),
    (
        "describe",
        &[("describe login", "the last run of a feature"), ("describe shop", "a project")],
    ),
    (
        "history",
        &[
            ("history login", "the events of the last run"),
            ("history login -f", "follow a running one"),
            ("history login -o jsonl", "for programs"),
        ],
    ),
    (
        "logs",
        &[("logs login -f", "follow the agent"), ("logs login --session 1", "an earlier session")],
    ),
    ("tree", &[("tree", "the runs of the project here"), ("tree login", "one feature")]),
    (
        "graph",
        &[("graph shop", "the features as a tree"), ("graph shop --as svg > shop.svg", "an image")],
    ),
    ("why", &[("why", "the project here"), ("why login", "a feature")]),
    (
        "session",
        &[
            ("session list shop", "the sessions of a project"),
            ("session transcript login", "the conversation of the last session"),
        ],
    ),
    (
        "usage",
        &[
            ("usage --by model", "tokens and cost of all projects"),
            ("usage shop -o csv", "for a spreadsheet"),
        ],
    ),
    ("schema", &[("schema", "the names of the documents"), ("schema status", "one JSON Schema")]),
    (
        "pause",
        &[
            ("pause shop --why \"release today\"", "a project"),
            ("pause --filter label.team=web --dry-run", "the runs with a label"),
            ("pause login --wait --timeout 10m", "return when its session has ended"),
        ],
    ),
    ("resume", &[("resume shop", "a project"), ("resume login", "a paused or blocked feature")]),
    ("cancel", &[("cancel login --why \"not needed\"", "a feature"), ("cancel shop", "a project")]),
    ("terminate", &[("terminate shop --why stuck", "kill the agents of a project")]),
    ("signal", &[("signal login note '\"use the new API\"'", "a note to the agent")]),
    ("steer", &[("steer login \"keep the old route\"", "a note for the next session")]),
    ("answer", &[("answer login \"yes, both formats\"", "the question of the agent")]),
    (
        "approve",
        &[
            ("approve login", "one feature"),
            ("approve --filter project=shop --yes", "all that wait for approval"),
        ],
    ),
    ("deny", &[("deny login --why \"no tests for errors\"", "back to the agent")]),
    (
        "fork",
        &[
            ("fork login --from last", "from the last step with a commit"),
            ("fork login --from before-failure --note \"try sqlite\"", "another way"),
            ("fork --filter status=blocked --from start --dry-run", "only report"),
        ],
    ),
    (
        "restart",
        &[
            ("restart login", "a feature from the beginning"),
            ("restart --filter status=blocked --yes", "all blocked features"),
        ],
    ),
    (
        "rollback",
        &[
            ("rollback shop --to login --dry-run", "the features that would be undone"),
            ("rollback shop --to 4a7931d --yes", "the target branch, to a commit"),
        ],
    ),
    ("checkpoint", &[("checkpoint login --note \"before lunch\"", "keep the current work")]),
    ("checkpoints", &[("checkpoints login", "the steps for fork and rollback")]),
    ("reconcile", &[("reconcile login --landed", "the effect happened")]),
    (
        "replay",
        &[("replay --all", "each run of the log"), ("replay runs.jsonl", "the runs of a file")],
    ),
    (
        "export",
        &[
            ("export --project shop -O shop.jsonl", "a project"),
            ("export --all -O all.jsonl", "everything"),
        ],
    ),
    ("import", &[("import shop.jsonl", "the runs of an export")]),
    ("backup", &[("backup -O night.backup", "the whole log, also while it is in use")]),
    ("restore", &[("restore night.backup --data-dir new", "into an empty data directory")]),
    ("check", &[("check", "look for damage"), ("check --repair", "repair it")]),
    (
        "prune",
        &[
            ("prune --older-than 30d --dry-run", "only report"),
            ("prune --older-than 12w --status passed --yes", "drop old histories"),
        ],
    ),
    (
        "doctor",
        &[("doctor", "this machine and the project here"), ("doctor --fix", "fix what is safe")],
    ),
    ("demo", &[("demo /tmp/reckon", "a project with a scripted agent")]),
    ("bench", &[("bench --quick", "a quick estimate")]),
    (
        "completions",
        &[("completions bash > ~/.local/share/bash-completion/completions/longhaul", "for bash")],
    ),
];

/// The command line with its help pages.
pub(crate) fn command() -> Command {
    let mut command = Arguments::command().disable_help_subcommand(false);
    for (name, examples) in EXAMPLES {
        command = command.mut_subcommand(name, |page| page.after_help(shown(examples)));
    }
    let groups = groups(&command);
    command.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{groups}\nOptions:\n{{options}}{{after-help}}"
    ))
}

fn shown(examples: &[(&str, &str)]) -> String {
    let width = examples.iter().map(|(line, _)| line.len()).max().unwrap_or_default();
    let mut text = String::from("Examples:\n");
    for (line, effect) in examples {
        let _ = writeln!(text, "  longhaul {line:width$}  {effect}");
    }
    text
}

/// The commands by group, each with the first line of its description.
fn groups(command: &Command) -> String {
    let mut text = String::new();
    for (group, names) in GROUPS {
        let _ = writeln!(text, "{group}:");
        for name in *names {
            let about = command.find_subcommand(name).and_then(Command::get_about);
            let about = match about {
                Some(about) => about.to_string(),
                None => "Print this page, or that of a command".to_owned(),
            };
            let about = textwrap::fill(
                &about,
                textwrap::Options::new(HELP_WIDTH - 15).subsequent_indent("               "),
            );
            let _ = writeln!(text, "  {name:<11}  {about}");
        }
        text.push('\n');
    }
    text.trim_end().to_owned() + "\n"
}

/// The width of the help page.
const HELP_WIDTH: usize = 100;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_command_has_a_group_and_examples_that_parse() {
        let command = command();
        let names: BTreeSet<&str> = command.get_subcommands().map(Command::get_name).collect();
        let grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| *names).copied().collect();
        let named: BTreeSet<&str> =
            grouped.iter().copied().filter(|name| *name != "help").collect();
        assert_eq!(named, names);
        assert_eq!(grouped.len(), names.len() + 1, "each command is in one group");
        let with_examples: BTreeSet<&str> = EXAMPLES.iter().map(|(name, _)| *name).collect();
        assert_eq!(with_examples, names);
        let mut wrong = Vec::new();
        for (name, examples) in EXAMPLES {
            for (line, _) in *examples {
                assert!(line.starts_with(name), "{name}: {line}");
                let line = line.split(" > ").next().unwrap();
                let mut words = vec!["longhaul".to_owned()];
                words.extend(longhaul_words(line));
                let parsed = super::command().try_get_matches_from(&words);
                wrong.extend(parsed.err().map(|error| format!("{line}: {error}")));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    /// The words of a line of the shell.
    fn longhaul_words(line: &str) -> Vec<String> {
        let (mut words, mut quote) = (vec![String::new()], None);
        for letter in line.chars() {
            match (letter, quote) {
                ('"' | '\'', None) => quote = Some(letter),
                (letter, Some(open)) if letter == open => quote = None,
                (' ', None) => words.push(String::new()),
                _ => words.last_mut().unwrap().push(letter),
            }
        }
        words
    }
}
