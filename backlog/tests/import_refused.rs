//! Files that are no backlogs, or broken ones: clear errors, and never a panic.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use longhaul_backlog::FeatureList;
use longhaul_backlog::export::{self, Target};
use longhaul_backlog::import::{self, Options, Shape};
use proptest::prelude::*;

const FILES: [&str; 10] = [
    include_str!("backlogs/spec-kit.md"),
    include_str!("backlogs/kiro.md"),
    include_str!("backlogs/quickstart.json"),
    include_str!("backlogs/ada.json"),
    include_str!("backlogs/beads.jsonl"),
    include_str!("backlogs/task-master.json"),
    include_str!("backlogs/tasks-md.md"),
    include_str!("backlogs/checklist.md"),
    include_str!("backlogs/junit.xml"),
    include_str!("backlogs/github.json"),
];

/// Reads and merges; returns the error.
fn refusal(text: &str, shape: Option<Shape>) -> String {
    let options = Options { shape, ..Options::default() };
    let mut list = FeatureList::create("p", &[]).unwrap();
    let before = list.clone();
    let outcome = import::read(text, &options)
        .and_then(|imported| import::merge(&mut list, &imported, false));
    assert_eq!(list, before, "a refused file changes nothing");
    outcome.unwrap_err().to_string()
}

#[track_caller]
fn check(text: &str, expected: &str) {
    assert_eq!(refusal(text, None), expected);
}

#[track_caller]
fn check_as(shape: Shape, text: &str, expected: &str) {
    assert_eq!(refusal(text, Some(shape)), expected);
}

#[test]
fn broken_files_are_refused_with_the_place() {
    check(
        "[{\"id\": 1,\n \"name\": }]",
        "line 2, column 10: not JSON: expected value; correct it there, or export it again",
    );
    check(
        "{\"id\": \"a\", \"title\": \"A\", \"status\": \"open\"}\n\n{\"id\": \"b\",",
        "line 3, column 11: not JSON: EOF while parsing a value; correct it there, or export it again",
    );
    check(
        "<testsuite>\n<testcase>\n</testsuite>",
        "line 3, column 1: not XML: expected 'testcase' tag, not 'testsuite'; run the tests again, or correct it there",
    );
    let bomb = "<!DOCTYPE a [<!ENTITY b \"b\">]>\n<testsuite>&b;</testsuite>";
    let refused = refusal(bomb, None);
    assert!(refused.contains("DTD"), "{refused}");
}

#[test]
fn what_has_no_known_shape_is_refused() {
    let known = "quickstart, adk, adk-meta, adk-tests, ada, ralph, beads, task-master, tasks-md, spec-kit, kiro, checklist, junit, github, list";
    let check = |text, found| {
        let expected = format!(
            "no backlog that is known: found {found}; if it is one of {known}, name it with --as"
        );
        assert_eq!(refusal(text, None), expected);
    };
    assert_eq!(refusal("\n", None), "the file is empty: there is nothing to import");
    check("Only words.\n", "a text without `- [ ]` boxes and `### Task 1: title` headings");
    check("[1, 2]", "a JSON array without entries that are objects");
    check(
        r#"[{"name": "bug", "color": "d73a4a", "description": "Something is broken"}, {"name": "docs", "color": "0075ca"}]"#,
        "labels, which are no work",
    );
    check("\"text\"", "a single JSON value");
    check("{\"name\": \"x\", \"version\": 2}", "a JSON object with the keys [name, version]");
    check(
        "{\"a\": 1}\n{\"b\": 2}\n",
        "lines of JSON that are no issues: `id`, `title` and `issue_type` are looked for",
    );
    check("<html/>", "XML with <html> at its root");
}

#[test]
fn what_has_several_shapes_is_refused() {
    let both =
        r#"{"project_name": "p", "features": [{"id": "a", "depends_on": []}], "userStories": []}"#;
    check(both, "this can be read as ada, ralph: name one with --as");
    let imported =
        import::read(both, &Options { shape: Some(Shape::Ralph), ..Options::default() }).unwrap();
    assert_eq!(imported.not_mapped[0].what, "the list under `features`");
}

#[test]
fn a_shape_that_does_not_fit_is_refused() {
    check_as(
        Shape::Ralph,
        "[]",
        "the document: this is not ralph: it has no array under `userStories`",
    );
    check_as(
        Shape::Quickstart,
        "{}",
        "the document: this is not quickstart: its root is no array of entries",
    );
    check_as(
        Shape::Github,
        "[{\"id\": 1}]",
        "/0: this is not github: an entry of it has number and title",
    );
    check_as(
        Shape::Beads,
        "{\"a\": 1}\n{\"b\": 1}",
        "line 1: this is not beads: an entry of it has id and title",
    );
    check_as(
        Shape::TaskMaster,
        "{}",
        "the document: this is not task-master: it has no array under `tasks`, and no tag has one",
    );
    check_as(
        Shape::Junit,
        "<a/>",
        "line 1: this is not junit: neither <testsuites> nor <testsuite> is at its root",
    );
    check_as(
        Shape::Checklist,
        "words",
        "the feature list has no entries: found a text without tasks; write lines such as `- [ ] Name: description`, or headings such as `### Task 1: title`",
    );
}

#[test]
fn wrong_entries_are_named_with_their_places() {
    check(
        r#"[{"description": "A", "passes": "yes"}, {"describen": "x", "passes": false}, 7]"#,
        "the feature list has 3 problems:\n\
         - /0, `passes`: found \"yes\"; write true or false\n\
         - /1, `name`: missing, and so is `description` (keys found: passes); write one of them\n\
         - /2, `entry`: found 7; write an object with at least a `name` or a `description`",
    );
    check(
        "{\"id\":\"a\",\"title\":\"A\",\"issue_type\":\"task\",\"dependencies\":[{\"depends_on_id\":\"zz\"}]}\n\
         {\"id\":\"a b\",\"title\":\"B\",\"issue_type\":\"task\"}\n",
        "the feature list has 2 problems:\n\
         - line 1 (`a`), `depends_on`: \"zz\" is no id and no name of another entry; add that feature, correct the id, or take the dependency out\n\
         - line 2 (`a b`), `id`: found \"a b\": only ASCII letters, digits and . _ - are allowed; write at most 64 ASCII letters, digits and . _ -, beginning with a letter or a digit\n\
         to import it anyway: --drop-dangling --rename-ids",
    );
    check(
        r#"{"features": [{"id": "a", "name": "A", "depends_on": ["b"]}, {"id": "b", "name": "B", "depends_on": ["a"]}]}"#,
        "the dependencies form a cycle: a -> b -> a; take one of them out of `depends_on`\n`b` is at /features/1\n`a` is at /features/0",
    );
}

/// Whatever it is: no panic; and what can be read can be written and read again.
fn try_everything(bytes: &[u8]) {
    let Ok(text) = import::decode(bytes) else { return };
    for shape in Shape::ALL.map(Some).into_iter().chain([None]) {
        let Ok(imported) = import::read(&text, &Options { shape, ..Options::default() }) else {
            continue;
        };
        assert!(imported.items.iter().all(|item| !item.feature.passes));
        let mut list = FeatureList::create("p", &[]).unwrap();
        let Ok(merged) = import::merge(&mut list, &imported, false) else { continue };
        assert_eq!(merged.added.len(), imported.items.len());
        for (target, shape) in [
            (Target::Quickstart, Shape::Quickstart),
            (Target::Ada, Shape::Ada),
            (Target::Beads, Shape::Beads),
        ] {
            let written = export::write(&list, target, "/p");
            let back =
                import::read(&written, &Options { shape: Some(shape), ..Options::default() });
            let back = back.unwrap_or_else(|error| panic!("{target}: {error}\n{written}"));
            let ids = |imported: &import::Imported| {
                let mut ids: Vec<_> =
                    imported.items.iter().map(|item| item.feature.id.clone()).collect();
                ids.sort_unstable();
                ids
            };
            assert_eq!(ids(&back), ids(&imported), "{target}\n{written}");
        }
    }
}

/// A file in which pieces were cut out, doubled, or overwritten.
fn mutated() -> impl Strategy<Value = Vec<u8>> {
    let change = (
        any::<prop::sample::Index>(),
        0..12_usize,
        prop::collection::vec(any::<u8>(), 0..4),
        any::<bool>(),
    );
    (prop::sample::select(&FILES[..]), prop::collection::vec(change, 1..6)).prop_map(
        |(file, changes)| {
            let mut bytes = file.as_bytes().to_vec();
            for (at, length, new, double) in changes {
                let from = at.index(bytes.len() + 1);
                let to = (from + length).min(bytes.len());
                let piece = bytes[from..to].to_vec();
                let new = if double { [piece.as_slice(), piece.as_slice()].concat() } else { new };
                bytes.splice(from..to, new);
            }
            bytes
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        try_everything(&bytes);
    }

    #[test]
    fn any_text_is_read_or_refused(text in r#"[\[{<#-]?[ \-\[\]x*#:.,"{}<>/a-c0-2\n]{0,80}"#) {
        try_everything(text.as_bytes());
    }

    #[test]
    fn mutated_files_are_read_or_refused(bytes in mutated()) {
        try_everything(&bytes);
    }
}
