//! Backlogs with faults and differences as public repositories hold them.

use std::fs;

use serde_json::{Value, json};

use super::World;

/// The order in which Longhaul starts the features of the list, without dependencies.
fn order(world: &World) -> Vec<String> {
    let list = world.list();
    let mut entries = list["features"].as_array().unwrap().clone();
    entries.sort_by_key(|entry| std::cmp::Reverse(entry["priority"].as_i64()));
    super::ids(&Value::Array(entries))
}

#[test]
fn the_order_of_priorities_is_reported_and_can_be_chosen() {
    let world = World::new(&[], 0.0);
    let text = r#"{"features": [{"id": "a", "title": "A", "priority": 1, "state": "not_started"},
        {"id": "b", "title": "B", "priority": 2, "state": "not_started"}]}"#;
    world
        .import(text, &[])
        .exits(0)
        .says("the lowest number in `priority` starts first (as the order of the file shows)");
    assert_eq!(order(&world), ["a", "b"]);
    world.project.write_list(&[]);
    let report = world.import(text, &["--priority", "high-first", "-o", "json"]).exits(0).json();
    assert_eq!(report["priority"], "high-first");
    assert_eq!(order(&world), ["b", "a"]);
    world.import(text, &["--priority", "upwards"]).exits(2).says("low-first");
}

#[test]
fn bad_entries_are_repaired_on_request() {
    let world = World::new(&[], 0.0);
    let text = r#"[{"id": "g++", "name": "G", "status": "todo", "depends_on": ["gone"]},
        {"id": "b", "name": "B", "status": "todo", "depends_on": ["g++"]}]"#;
    world.import(text, &[]).exits(2).says("to import it anyway: --drop-dangling --rename-ids");
    world
        .import(text, &["--drop-dangling", "--rename-ids"])
        .exits(0)
        .says("the dependency of `g` on `gone`: there is no such entry")
        .says("`g++` -> `g`");
    assert_eq!(world.list()["features"][1]["depends_on"], json!(["g"]));
    assert_eq!(world.list()["features"][0]["original_id"], "g++");
}

#[test]
fn tags_are_imported_together_and_differences_are_taken_over() {
    let world = World::new(&[], 0.0);
    let text = r#"{"master": {"tasks": [{"id": 1, "title": "One", "details": ""}]},
        "next": {"tasks": [{"id": 1, "title": "Other", "dependencies": []}]}}"#;
    world.import(text, &[]).exits(2).says("name one with --tag, or all");
    world.import(text, &["--tag", "all"]).exits(0);
    assert_eq!(world.ids(), ["1", "next-1"]);
    let text = text.replace("Other", "Another");
    world
        .import(&text, &["--tag", "all"])
        .exits(0)
        .says("1 differ there: --update takes them over")
        .says("next-1 (/next/tasks/0): another name there, left as it is");
    world.import(&text, &["--tag", "all", "--update", "--dry-run"]).exits(0).says("would update");
    assert_eq!(world.list()["features"][1]["name"], "Other");
    world.import(&text, &["--tag", "all", "--update"]).exits(0).says("updated 1 feature in");
    assert_eq!(world.list()["features"][1]["name"], "Another");
}

#[test]
fn a_list_in_utf_16_is_the_list_of_a_project() {
    let world = World::new(&[], 0.0);
    let text =
        "\u{feff}{\"features\": [{\"id\": \"a\", \"name\": \"A\", \"checks\": [\"true\"]}]}\r\n";
    let bytes: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    fs::write(world.project.root().join("feature_list.json"), bytes).unwrap();
    world.longhaul.call(&["feature", "list", &world.root]).exits(0).says("a ");
    let add = ["feature", "add", "b", "B", "--check", "true", "--dir", &world.root];
    world.longhaul.call(&add).exits(0);
    assert_eq!(world.ids(), ["a", "b"]);
}

#[test]
fn long_output_takes_a_screen() {
    let world = World::new(&[], 0.0);
    let entry = |number| {
        format!(r#"{{"id": "f{number}", "name": "F {number}", "status": "todo", "note": "n"}}"#)
    };
    let entries: Vec<String> = (0..300).map(entry).collect();
    let text = format!("[{}]", entries.join(","));
    let output = world.import(&text, &["--dry-run"]);
    output.exits(0).says("more (--all names all)");
    assert!(output.stdout.lines().count() <= 40, "{}", output.stdout);
    let all = world.import(&text, &["--all"]).exits(0).stdout.clone();
    assert!(all.lines().count() > 300, "{all}");
    let list = world.longhaul.call(&["feature", "list", &world.root]).exits(0).stdout.clone();
    assert!(list.lines().count() <= 40, "{list}");
    assert!(list.ends_with("more; --all shows all 300\n"), "{list}");
    let list =
        world.longhaul.call(&["feature", "list", &world.root, "--all"]).exits(0).stdout.clone();
    assert_eq!(list.lines().count(), 301, "{list}");
}

#[test]
fn all_cycles_are_named_and_drawn() {
    let world = World::new(&[], 0.0);
    let text = r#"{"features": [{"id": "a", "name": "A", "depends_on": ["b"]}, {"id": "b", "name": "B", "depends_on": ["a"]},
        {"id": "x", "name": "X", "depends_on": ["z"]}, {"id": "y", "name": "Y", "depends_on": ["x"]},
        {"id": "z", "name": "Z", "depends_on": ["y"]}]}"#;
    world
        .import(text, &[])
        .exits(2)
        .says("the dependencies form 2 cycles; take one link of each out of `depends_on`")
        .says("- a -> b -> a (`a` without `b`)\n- x -> z -> y -> x (`x` without `z`)");
    world.project.write("feature_list.json", text);
    world.longhaul.call(&["graph", &world.root]).exits(0).says("2 dependency cycles;");
    let graph = world.longhaul.call(&["graph", &world.root, "-o", "json"]).exits(0).json();
    assert_eq!(graph["cycles"][1]["path"], json!(["x", "z", "y", "x"]));
}
