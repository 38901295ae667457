//! The house rules that a compiler does not check: which part may know which, and that files stay
//! easy to read.

mod style;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use syn::{Attribute, Item, Meta, Variant};

/// The most lines that a file of code may have.
const LINES_MAX: usize = 600;
/// The most lines that nearly all files have, and the share of files that may have more, in
/// percent.
const LINES_USUAL: usize = 250;
const LONGER_MAX_PERCENT: usize = 15;

/// The arrows between the parts: what each may depend on, tests of its own included.
const ARROWS: [(&str, &[&str]); 8] = [
    ("engine", &[]),
    ("storage", &["engine"]),
    ("workflows", &["engine"]),
    ("backlog", &["workflows"]),
    ("activities", &["engine", "workflows", "backlog"]),
    ("server", &["engine", "storage", "workflows", "backlog", "activities"]),
    ("bench", &["engine", "storage", "workflows", "activities", "server", "model-server"]),
    // The demo plays the model of the built-in agent.
    (
        "cli",
        &[
            "engine",
            "storage",
            "workflows",
            "backlog",
            "activities",
            "server",
            "bench",
            "model-server",
        ],
    ),
];

/// What workflow code may use besides the engine: nothing that could touch the world.
const PURE_HELPERS: [&str; 8] =
    ["async-trait", "blake3", "chrono", "petgraph", "schemars", "serde", "serde_json", "thiserror"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_path_buf()
}

fn dependencies(part: &str) -> BTreeSet<String> {
    let text = fs::read_to_string(root().join(part).join("Cargo.toml")).unwrap();
    let manifest: toml::Table = text.parse().unwrap();
    let dependencies = manifest.get("dependencies").and_then(toml::Value::as_table);
    dependencies.into_iter().flat_map(|table| table.keys().cloned()).collect()
}

/// All files of Rust code that belong to the project.
fn code() -> Vec<(PathBuf, String)> {
    let mut open: Vec<PathBuf> = [
        "engine",
        "storage",
        "workflows",
        "backlog",
        "activities",
        "server",
        "bench",
        "cli",
        "tests",
    ]
    .map(|part| root().join(part))
    .into();
    let mut found = Vec::new();
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            // The demo's template is another project, with rules of its own.
            if path.is_dir() && !path.ends_with("target") && !path.ends_with("demo/template") {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                found.push((path.strip_prefix(root()).unwrap().to_path_buf(), text));
            }
        }
    }
    assert!(found.len() > 50, "the code is found");
    found
}

fn assert_none(offence: &str, offenders: &[String]) {
    assert!(offenders.is_empty(), "{offence}:\n{}", offenders.join("\n"));
}

#[test]
fn parts_know_only_what_they_may() {
    for (part, allowed) in ARROWS {
        let known = dependencies(part);
        let parts = known.iter().filter_map(|name| name.strip_prefix("longhaul-"));
        let forbidden: Vec<String> =
            parts.filter(|name| !allowed.contains(name)).map(str::to_owned).collect();
        assert_none(&format!("{part} may not depend on"), &forbidden);
    }
}

#[test]
fn workflows_cannot_touch_the_world() {
    let known = dependencies("workflows");
    let others = known
        .iter()
        .filter(|name| *name != "longhaul-engine" && !PURE_HELPERS.contains(&name.as_str()));
    assert_none("workflows may not depend on", &others.cloned().collect::<Vec<_>>());
}

#[test]
fn only_activities_start_processes() {
    let starts = ["process::Command", "Command::new("];
    let mut offenders = Vec::new();
    for (path, text) in code() {
        let may = path.starts_with("activities")
            || path.starts_with("tests")
            || path.components().any(|part| part.as_os_str() == "tests");
        // The demo makes its own repository before there is anything to be an activity of; the
        // bench measures a child.
        let may = may
            || path.starts_with("cli/src/demo")
            || path.starts_with("cli/src/demo.rs")
            || path.starts_with("bench");
        if !may && starts.iter().any(|start| text.contains(start)) {
            offenders.push(path.display().to_string());
        }
    }
    assert_none("processes are started outside of activities", &offenders);
}

#[test]
fn files_are_small() {
    let code = code();
    let lines = |text: &String| text.lines().count();
    let long = code.iter().filter(|(_, text)| lines(text) > LINES_MAX);
    let long: Vec<String> =
        long.map(|(path, text)| format!("{} has {} lines", path.display(), lines(text))).collect();
    assert_none("split these along their meaning", &long);
    let longer = code.iter().filter(|(_, text)| lines(text) > LINES_USUAL).count();
    assert!(
        longer * 100 <= code.len() * LONGER_MAX_PERCENT,
        "{longer} of {} files have over {LINES_USUAL} lines",
        code.len()
    );
}

#[test]
fn every_module_says_what_it_is_for() {
    let without_purpose = code().into_iter().filter(|(_, text)| !text.starts_with("//! "));
    assert_none(
        "these do not begin with a sentence of purpose",
        &without_purpose.map(|(path, _)| path.display().to_string()).collect::<Vec<_>>(),
    );
}

#[test]
fn exit_codes_are_in_the_readme() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    for code in 0..=5 {
        assert!(
            readme.contains(&format!("\n| {code} |")),
            "exit code {code} is in the table of the README"
        );
    }
}

/// The names and aliases of all commands: those of the variants of clap's enums. `longhaul-cli`
/// exports only `main`, so clap's command tree is not available here.
fn verbs() -> BTreeSet<String> {
    let arguments = code()
        .into_iter()
        .filter(|(path, _)| path.to_string_lossy().starts_with("cli/src/arguments"));
    let items = arguments.flat_map(|(_, text)| syn::parse_file(&text).unwrap().items);
    let commands = items.filter_map(|item| match item {
        Item::Enum(item) if has(&item.attrs, "derive", "Subcommand") => Some(item.variants),
        _ => None,
    });
    let variants = commands.flatten().filter(|it| !has(&it.attrs, "command", "flatten"));
    variants.flat_map(|variant| names_of(&variant)).collect()
}

/// Whether an attribute with this name contains a word.
fn has(attributes: &[Attribute], name: &str, word: &str) -> bool {
    lists(attributes, name).any(|tokens| tokens.contains(word))
}

/// The content of the attributes with this name.
fn lists<'a>(attributes: &'a [Attribute], name: &'a str) -> impl Iterator<Item = String> + 'a {
    attributes.iter().filter_map(move |attribute| match &attribute.meta {
        Meta::List(list) if list.path.is_ident(name) => Some(list.tokens.to_string()),
        _ => None,
    })
}

/// The name of a command, as clap derives it, and its aliases.
fn names_of(variant: &Variant) -> Vec<String> {
    let mut name = String::new();
    for letter in variant.ident.to_string().chars() {
        if letter.is_ascii_uppercase() && !name.is_empty() {
            name.push('-');
        }
        name.push(letter.to_ascii_lowercase());
    }
    let tokens: Vec<String> = lists(&variant.attrs, "command").collect();
    let texts = tokens.iter().flat_map(|tokens| tokens.split('"').skip(1).step_by(2));
    texts.map(str::to_owned).chain([name]).collect()
}

/// Only the server and the command line know the commands of the command line: the other crates
/// return data, which these render.
#[test]
fn only_the_server_and_the_command_line_name_commands() {
    let verbs = verbs();
    for verb in ["run", "pause", "unpause", "why", "reconcile", "checkpoints"] {
        assert!(verbs.contains(verb), "`{verb}` is not among {verbs:?}");
    }
    let named = |line: &str| {
        let words = line.split("longhaul ").skip(1);
        words.into_iter().any(|rest| {
            let is_name = |letter: &char| letter.is_ascii_lowercase() || *letter == '-';
            verbs.contains(&rest.chars().take_while(is_name).collect::<String>())
        })
    };
    let mut offenders = Vec::new();
    for (path, text) in code() {
        let is_below =
            ["engine/src", "storage/src", "workflows/src", "backlog/src", "activities/src"]
                .iter()
                .any(|part| path.starts_with(part));
        let lines = text.lines().take_while(|line| !line.starts_with("#[cfg(test)]"));
        for (number, line) in (1..).zip(lines).filter(|_| is_below) {
            if !line.trim_start().starts_with("//") && named(line) {
                offenders.push(format!("{}:{number}: {}", path.display(), line.trim()));
            }
        }
    }
    assert_none("these name commands of the command line", &offenders);
}
