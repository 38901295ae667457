//! Work that was given up is not imported, and the direction of priorities is said.

use longhaul_backlog::FeatureList;
use longhaul_backlog::import::{self, Imported, Options, Shape};

fn read(text: &str, shape: Shape) -> Imported {
    let options = Options { shape: Some(shape), ..Options::default() };
    import::read(text, &options).expect("it can be read")
}

#[test]
fn nothing_waits_for_a_cancelled_task() {
    let text = r#"{"tasks": [
        {"id": 1, "title": "Old", "status": "cancelled", "subtasks": []},
        {"id": 2, "title": "New", "status": "pending", "dependencies": [1, "1.2", 3]},
        {"id": 3, "title": "Base", "status": "done"}]}"#;
    let imported = read(text, Shape::TaskMaster);
    let of = |item: &import::Item| (item.feature.id.to_string(), item.feature.depends_on.len());
    let found: Vec<_> = imported.items.iter().map(of).collect();
    assert_eq!(found, [("2".to_owned(), 1), ("3".to_owned(), 0)]);
    let left: Vec<&str> = imported.not_mapped.iter().map(|left| left.what.as_str()).collect();
    let expected = ["the task 1", "the dependency on the task 1", "the dependency on the task 1.2"];
    assert_eq!(left, expected);
}

#[test]
fn the_direction_of_priorities_is_reported() {
    let line = |id: &str, priority: u8| {
        format!(
            r#"{{"id": "{id}", "title": "T", "status": "open", "issue_type": "task", "priority": {priority}}}"#
        )
    };
    let imported = read(&[line("a-1", 0), line("a-2", 3)].join("\n"), Shape::Beads);
    let says = |notes: &[String], text: &str| notes.iter().any(|note| note.contains(text));
    assert!(says(&imported.notes, "the lowest number in `priority` starts first"));

    let list = |meta: &str| {
        let text = format!(
            r#"{{"_meta": {{"priority": "{meta}"}}, "features": [
            {{"id": "a", "name": "A", "priority": 1}}, {{"id": "b", "name": "B", "priority": 3}}]}}"#
        );
        FeatureList::parse(&text).unwrap().notes().to_vec()
    };
    let otherwise = "the highest number in `priority` starts first, although `_meta.priority`";
    assert!(says(&list("1 = highest"), otherwise));
    assert!(!says(&list("higher number first"), "starts first"));
}
