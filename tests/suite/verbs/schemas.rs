//! Every document is known to `longhaul schema`, has a description for each field that needs one,
//! and is recorded.

use std::fs;
use std::path::Path;

use longhaul_tests::command::Longhaul;
use serde_json::Value;

fn longhaul() -> Longhaul {
    Longhaul::new(env!("CARGO_BIN_EXE_longhaul-under-test"), "/nowhere")
}

#[test]
fn every_schema_says_what_it_is_of() {
    let names = longhaul().call(&["schema"]).exits(0).stdout.clone();
    assert!(names.lines().count() > 20, "{names}");
    for name in names.lines() {
        let schema = longhaul().call(&["schema", name]).exits(0).json();
        let id = format!("longhaul.{name}/1");
        assert_eq!(
            (&schema["title"], &schema["properties"]["schema"]["const"]),
            (&Value::from(id.clone()), &id.into())
        );
        assert_eq!(schema["required"][0], "schema", "{name}");
        assert!(schema["description"].is_string(), "{name}");
    }
    longhaul().call(&["schema", "nothing"]).exits(2).says("describe");
}

#[test]
fn every_field_is_described() {
    let mut bare = Vec::new();
    for name in
        longhaul().call(&["schema"]).exits(0).stdout.lines().filter(|name| !APART.contains(name))
    {
        let schema = longhaul().call(&["schema", name]).exits(0).json();
        fields(&schema, &mut |field, property| {
            // A constant tells the variants of an enum apart.
            if !property["const"].is_string() && !property["description"].is_string() {
                bare.push(format!("{name}: {field}"));
            }
        });
    }
    assert!(bare.is_empty(), "these have no description:\n{}", bare.join("\n"));
}

/// All fields of a schema, those of its parts included.
fn fields(schema: &Value, take: &mut impl FnMut(&str, &Value)) {
    match schema {
        Value::Object(parts) => {
            for (name, part) in parts {
                if let (true, Value::Object(properties)) = (name == "properties", part) {
                    properties.iter().for_each(|(field, property)| take(field, property));
                }
                fields(part, take);
            }
        }
        Value::Array(parts) => parts.iter().for_each(|part| fields(part, take)),
        _ => {}
    }
}

/// The verbs that have tests of their own, for what they do takes long: a demo, measurements,
/// scripts for shells.
const APART: [&str; 6] = ["demo", "bench", "completions", "detached", "help", "watch"];

#[test]
fn every_verb_and_every_document_is_recorded() {
    let recorded = recorded(&Path::new(env!("CARGO_MANIFEST_DIR")).join("snapshots"));
    let help = longhaul().call(&["--help"]).exits(0).stdout.clone();
    let (_, commands) = help.split_once("Run:").unwrap();
    let (commands, _) = commands.split_once("Options:").unwrap();
    let is_verb = |line: &&str| line.chars().position(|letter| letter != ' ') == Some(2);
    let verbs = commands.lines().filter(is_verb).filter_map(|line| line.split_whitespace().next());
    let missing: Vec<&str> = verbs
        .filter(|verb| {
            !APART.contains(verb)
                && *verb != "schema"
                && !recorded.contains(&format!("longhaul {verb}"))
        })
        .collect();
    assert!(missing.is_empty(), "these have no snapshot: {missing:?}");

    let readme =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../README.md")).unwrap();
    for name in
        longhaul().call(&["schema"]).exits(0).stdout.lines().filter(|name| !APART.contains(name))
    {
        assert!(
            recorded.contains(&format!("longhaul.{name}/")),
            "the document {name} has no snapshot"
        );
        assert!(readme.contains(&format!("`{name}`")), "the document {name} is not in the README");
    }
}

/// All that was recorded.
fn recorded(dir: &Path) -> String {
    let mut text = String::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        text += &if path.is_dir() { recorded(&path) } else { fs::read_to_string(path).unwrap() };
    }
    text
}

/// Documents are printed through the registry alone, where each has a name and a schema.
#[test]
fn nothing_else_is_printed_as_json() {
    let by_hand = [
        "json!({ \"schema\"",
        "\"schema\":",
        "term::print(serde_json",
        "schema: String",
        "schema: &'static str",
    ];
    let may = ["command/schema.rs", "document.rs"];
    let mut open = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("../cli/src")];
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|end| end == "rs")
                && !may.iter().any(|file| path.ends_with(file))
            {
                let text = fs::read_to_string(&path).unwrap();
                let found: Vec<_> = by_hand.iter().filter(|words| text.contains(**words)).collect();
                assert!(
                    found.is_empty(),
                    "{} has {found:?}: print it with `document::print`",
                    path.display()
                );
            }
        }
    }
}
