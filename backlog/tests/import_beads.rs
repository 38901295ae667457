//! Issues of beads as repositories hold them: withdrawn issues, epics, and several kinds of links.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use longhaul_backlog::import::{self, Options};

/// `id: dependencies`, one line per feature, and the reasons for what is left out.
#[track_caller]
fn check(text: &str, expected: &[&str], left: &[&str]) {
    let imported = import::read(text, &Options::default()).unwrap();
    let line = |item: &import::Item| {
        let needs: Vec<_> = item.feature.depends_on.iter().map(ToString::to_string).collect();
        let done = if item.extra.contains_key("claimed_passes") { " done" } else { "" };
        format!("{}: {}{done}", item.feature.id, needs.join(" "))
    };
    let lines: Vec<String> = imported.items.iter().map(line).collect();
    assert_eq!(lines, expected);
    let reasons: Vec<String> =
        imported.not_mapped.iter().map(|left| format!("{}: {}", left.what, left.reason)).collect();
    assert_eq!(reasons, left);
}

#[test]
fn a_withdrawn_issue_is_not_done() {
    check(
        r#"{"id":"bd-1","title":"A","issue_type":"task","status":"closed","close_reason":"Duplicate of bd-2"}
{"id":"bd-2","title":"B","issue_type":"bug","status":"closed","close_reason":"Stale cache entries are evicted now"}
{"id":"bd-3","title":"C","issue_type":"task","status":"closed","close_reason":"Superseded by bd-4: the parser is rewritten"}
{"id":"bd-4","title":"D","issue_type":"task","status":"open","dependencies":[{"issue_id":"bd-4","depends_on_id":"bd-3","type":"blocks"}]}
{"id":"bd-5","title":"E","issue_type":"task","status":"closed","close_reason":"Closed as stale"}
{"id":"bd-6","title":"F","issue_type":"task","status":"closed","close_reason":"Done","dependencies":[{"issue_id":"bd-6","depends_on_id":"bd-2","type":"duplicates"}]}
{"id":"bd-7","title":"G","issue_type":"task","status":"closed","close_reason":"Duplicate code removed from all commands"}
"#,
        &["bd-2:  done", "bd-4: ", "bd-7:  done"],
        &[
            "the issue \"bd-1\": it was closed as \"Duplicate of bd-2\"",
            "the issue \"bd-3\": it was closed as \"Superseded by bd-4: the parser is rewritten\"",
            "the link to \"bd-3\": that issue is not imported: it was closed as \"Superseded by bd-4: the parser is rewritten\"",
            "the issue \"bd-5\": it was closed as \"Closed as stale\"",
            "the issue \"bd-6\": it duplicates bd-2",
        ],
    );
}

#[test]
fn an_epic_is_a_container_of_its_children() {
    check(
        r#"{"id":"m-1","title":"Parser","issue_type":"epic","status":"open","dependencies":[{"issue_id":"m-1","depends_on_id":"m-9","type":"blocks"}]}
{"id":"m-1.1","title":"Lexer","issue_type":"task","status":"closed","dependencies":[{"issue_id":"m-1.1","depends_on_id":"m-1","type":"parent-child"}]}
{"id":"m-1.2","title":"Trees","issue_type":"task","status":"open","dependencies":[{"issue_id":"m-1.2","depends_on_id":"m-1.1","type":"blocks"},{"issue_id":"m-1.2","depends_on_id":"m-1","type":"blocks"}]}
{"id":"m-2","title":"Printer","issue_type":"feature","status":"open","dependencies":[{"issue_id":"m-2","depends_on_id":"m-1","type":"blocks"}]}
{"id":"m-9","title":"Grammar","issue_type":"task","status":"open"}
{"id":"m-10","title":"An epic without issues","issue_type":"epic","status":"open"}
"#,
        &["m-1.1: m-9 done", "m-1.2: m-1.1 m-9", "m-2: m-1.1 m-1.2", "m-9: ", "m-10: "],
        &[
            "the epic \"m-1\": its issues are imported, and a dependency on it becomes a dependency \
             on each of them",
            "the link to \"m-1\": a link of the type `parent-child` orders nothing",
            "the link to \"m-1\": an issue does not wait for its own epic",
        ],
    );
}

#[test]
fn blocked_by_orders_in_all_spellings() {
    check(
        r#"{"id":"a","title":"A","issue_type":"task","status":"open","dependencies":[{"type":"blocked_by","target":"b"}]}
{"id":"b","title":"B","issue_type":"task","status":"blocked","dependencies":[{"type":"blocked-by","target_id":"c"}]}
{"id":"c","title":"C","issue_type":"task","status":"open","blocked_by":["d"]}
{"id":"d","title":"D","issue_type":"task","status":"open","dependencies":["e"]}
{"id":"e","title":"E","issue_type":"task","status":"open"}
"#,
        &["a: b", "b: c", "c: d", "d: e", "e: "],
        &[],
    );
}

#[test]
fn the_epic_is_kept_with_its_children() {
    let text = r#"{"id":"m-1","title":"Parser","issue_type":"epic","status":"open"}
{"id":"m-1.1","title":"Lexer","issue_type":"task","status":"open"}
"#;
    let imported = import::read(text, &Options::default()).unwrap();
    assert_eq!(imported.items[0].extra["epic"], "m-1 Parser");
}
