//! The order of priority numbers: from the options, a text of the list, dependencies, or the file.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use longhaul_backlog::import::{self, Imported, Options, PriorityOrder};

/// The ids in the order in which Longhaul starts them if nothing waits, and the note on the order.
fn order(text: &str, priority: Option<PriorityOrder>) -> (String, String) {
    let imported: Imported =
        import::read(text, &Options { priority, ..Options::default() }).unwrap();
    let mut items: Vec<_> = imported.items.iter().map(|item| &item.feature).collect();
    items.sort_by_key(|feature| std::cmp::Reverse(feature.priority));
    let ids: Vec<&str> = items.iter().map(|feature| feature.id.as_str()).collect();
    let note = imported.notes.iter().find(|note| note.contains("starts first"));
    (ids.join(" "), note.cloned().unwrap_or_default())
}

#[track_caller]
fn check(text: &str, expected: &str, reason: &str) {
    let (ids, note) = order(text, None);
    assert_eq!(ids, expected, "{note}");
    assert!(note.contains(reason), "{note}");
}

#[test]
fn the_order_of_the_file_shows_the_direction() {
    check(
        r#"{"project": "noted", "features": [
            {"id": "ask", "priority": 1, "title": "Ask", "state": "not_started"},
            {"id": "skip", "priority": 2, "title": "Skip", "state": "not_started"},
            {"id": "show", "priority": 3, "title": "Show", "state": "not_started"}]}"#,
        "ask skip show",
        "the lowest number in `priority` starts first (as the order of the file shows); --priority high-first reverses it",
    );
    check(
        r#"[{"id": "a", "name": "A", "priority": 90}, {"id": "b", "name": "B", "priority": 50}]"#,
        "a b",
        "the highest number in `priority` starts first (as the order of the file shows)",
    );
}

#[test]
fn dependencies_show_the_direction() {
    // The file has another order.
    check(
        r#"{"project_name": "shop", "features": [
            {"id": "pay", "name": "Pay", "priority": 3, "depends_on": ["basket"], "acceptance_criteria": ["x"]},
            {"id": "basket", "name": "Basket", "priority": 2, "depends_on": ["tables"], "acceptance_criteria": []},
            {"id": "tables", "name": "Tables", "priority": 1, "depends_on": [], "acceptance_criteria": []}]}"#,
        "tables basket pay",
        "the lowest number in `priority` starts first (as the dependencies show)",
    );
}

#[test]
fn a_text_of_the_list_says_the_direction() {
    let list = |meta: &str| {
        format!(
            r#"{{{meta}, "features": [{{"id": "a", "name": "A", "priority": 5}},
               {{"id": "b", "name": "B", "priority": 1}}, {{"id": "c", "name": "C", "priority": 3}}]}}"#
        )
    };
    let low = |meta: &str, place: &str| {
        check(
            &list(meta),
            "b c a",
            &format!("the lowest number in `priority` starts first (as `{place}` says)"),
        );
    };
    let high = |meta: &str, place: &str| {
        check(
            &list(meta),
            "a c b",
            &format!("the highest number in `priority` starts first (as `{place}` says)"),
        );
    };
    low(r#""_meta": {"priority": "1 = highest, 5 = lowest"}"#, "_meta.priority");
    low(
        r#""_meta": {"rules": ["Work on one feature", "Lower number means higher priority"]}"#,
        "_meta.rules",
    );
    low(r#""rules": {"priority_order": "ascending"}"#, "rules.priority_order");
    low(r#""priority_legend": {"1": "critical", "2": "high", "5": "low"}"#, "priority_legend");
    high(r#""_meta": {"priority_scale": "1-5, higher is more important"}"#, "_meta.priority_scale");
    high(r#""_meta": {"priorities": {"1": "low", "5": "critical"}}"#, "_meta.priorities");
}

#[test]
fn the_option_decides_and_takes_fractions() {
    let text = r#"{"userStories": [{"id": "US-1", "title": "One", "priority": 1, "passes": false},
        {"id": "US-2", "title": "Two", "priority": 2, "passes": false},
        {"id": "US-1b", "title": "Between", "priority": 1.5, "passes": false}]}"#;
    check(text, "US-1 US-1b US-2", "as usual in this format");
    assert_eq!(order(text, Some(PriorityOrder::HighFirst)).0, "US-2 US-1b US-1");
    let ada = r#"{"project_name": "p", "features": [
        {"id": "a", "name": "A", "priority": 1, "depends_on": [], "acceptance_criteria": []},
        {"id": "b", "name": "B", "priority": "2", "depends_on": [], "acceptance_criteria": []}]}"#;
    assert_eq!(order(ada, Some(PriorityOrder::HighFirst)).0, "b a");
    assert_eq!(order(ada, Some(PriorityOrder::LowFirst)).0, "a b");
}

#[test]
fn an_unknown_word_is_reported_and_kept() {
    let text = r#"[{"id": "a", "name": "A", "status": "todo", "priority": "must-have"}]"#;
    let imported = import::read(text, &Options::default()).unwrap();
    assert_eq!(imported.notes[0], "the priority `must-have` is not known: read as none (/0)");
    assert_eq!(imported.items[0].extra["list_priority"], "must-have");
    let task =
        r#"{"master": {"tasks": [{"id": 1, "title": "T", "priority": "urgent!", "details": ""}]}}"#;
    assert!(import::read(task, &Options::default()).is_ok());
}
