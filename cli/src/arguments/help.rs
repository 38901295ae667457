//! The help pages: commands by group, and examples.

use std::fmt::Write as _;

use clap::{Command, CommandFactory};

use super::Arguments;
use super::examples::EXAMPLES;

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

/// The command line with its help pages.
pub(crate) fn command() -> Command {
    let mut command = Arguments::command().disable_help_subcommand(false);
    for (name, examples) in EXAMPLES {
        let page = |page: Command| {
            let aliases = aliases(&page);
            page.after_help(shown(examples) + &aliases)
        };
        command = match name.split_once(' ') {
            Some((name, inner)) => {
                command.mut_subcommand(name, |above| above.mut_subcommand(inner, page))
            }
            None => command.mut_subcommand(name, page),
        };
    }
    let groups = groups(&command);
    command.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{groups}\nOptions:\n\
         {{options}}{{after-help}}"
    ))
}

/// The other names of a command.
fn aliases(page: &Command) -> String {
    let names: Vec<&str> = page.get_visible_aliases().collect();
    if names.is_empty() { String::new() } else { format!("\nAliases: {}\n", names.join(", ")) }
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
        for page in command.get_subcommands() {
            let name = page.get_name();
            assert!(with_examples.contains(name), "{name}");
            for inner in page.get_subcommands().map(Command::get_name) {
                assert!(with_examples.contains(&*format!("{name} {inner}")), "{name} {inner}");
            }
        }
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

    #[test]
    fn the_page_of_each_command_has_its_examples_and_aliases() {
        let mut pages: Vec<Command> = super::command().get_subcommands().cloned().collect();
        while let Some(mut page) = pages.pop() {
            let help = page.render_long_help().to_string();
            let name = page.get_name();
            assert!(help.contains("Examples:\n  longhaul "), "{name}: {help}");
            if page.get_visible_aliases().next().is_some() {
                assert!(help.contains(&aliases(&page)), "{name}: {help}");
            }
            // Rendering adds the subcommand `help` of clap.
            pages.extend(page.get_subcommands().filter(|page| page.get_name() != "help").cloned());
        }
    }

    /// The words of a line of the shell.
    fn longhaul_words(line: &str) -> Vec<String> {
        let mut words = vec![String::new()];
        let mut quote = None;
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
