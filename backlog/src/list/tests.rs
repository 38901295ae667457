//! Lists in, features, notes, errors and texts out.

use std::collections::BTreeMap;

use serde_json::json;

use super::*;
use longhaul_workflows::backlog::FeatureStatus;

const NOW: &str = "2026-02-01T10:00:00Z";

fn id(text: &str) -> FeatureId {
    FeatureId::new(text).unwrap()
}

fn list(document: &Value) -> FeatureList {
    FeatureList::parse(&document.to_string()).unwrap()
}

/// One feature to a line, then the notes.
fn check_read(document: &Value, expected: &[&str]) {
    let list = list(document);
    let line = |feature: &Feature| {
        let depends_on: Vec<&str> = feature.depends_on.iter().map(FeatureId::as_str).collect();
        let checks: Vec<String> =
            feature.checks.iter().map(|check| format!("{}={}", check.name, check.run)).collect();
        let Feature { id, name, description, priority, status, passes, .. } = feature;
        let claim = format!("{status}/{passes}/{}", feature.last_tested.as_deref().unwrap_or("-"));
        let criteria = feature.acceptance_criteria.join(";");
        format!(
            "{id}|{name}|{description}|{priority}|{claim}|{criteria}|{}|{}",
            depends_on.join(","),
            checks.join(",")
        )
    };
    let found: Vec<String> =
        list.features().iter().map(line).chain(list.notes().iter().cloned()).collect();
    assert_eq!(found, expected);
}

fn check_refused(text: &str, expected: &str) {
    assert_eq!(FeatureList::parse(text).unwrap_err().to_string(), expected);
}

fn check_states(
    document: &Value,
    states: &[(&str, FeatureStatus, bool, Option<&str>)],
    expected: &Value,
) {
    let mut list = list(document);
    let state = |&(name, status, passes, tested): &(&str, FeatureStatus, bool, Option<&str>)| {
        (id(name), EntryState { status, passes, last_tested: tested.map(str::to_owned) })
    };
    let states: BTreeMap<_, _> = states.iter().map(state).collect();
    assert!(list.set_states(&states, NOW));
    assert_eq!(list.to_text(), format!("{expected:#}\n"));
    assert_eq!(
        FeatureList::parse(&list.to_text()).unwrap().features(),
        list.features(),
        "the same when read again"
    );
    assert!(!list.set_states(&states, "later"));
    assert_eq!(list.to_text(), format!("{expected:#}\n"), "writing the same again changes nothing");
}

fn check_edits(before: &Value, after: &Value, edits: &[&str], flips: &[&str]) {
    let before = list(before);
    let after = list(after);
    let texts =
        |found: Vec<Difference>| found.iter().map(Difference::to_string).collect::<Vec<_>>();
    assert_eq!(texts(after.edits_since(&before)), edits);
    assert_eq!(texts(after.flips_since(&before)), flips);
}

fn check_added(document: &Value, feature: &Feature, expected: &Value) {
    let mut list = list(document);
    let text = list.add(feature).unwrap();
    let entry = list
        .document()
        .as_array()
        .or_else(|| list.document()["features"].as_array())
        .unwrap()
        .last();
    assert_eq!(entry.unwrap().to_string(), expected.to_string());
    assert_eq!(FeatureList::parse(&text).unwrap().features().last().unwrap().id, feature.id);
}

#[test]
fn the_own_shape_is_read() {
    check_read(
        &json!({"project_name": "shop", "features": [
            {"id": "tables", "name": "Tables", "description": "d", "status": "completed", "passes": true,
             "last_tested": "2026-01-18T00:00:00", "priority": 3, "acceptance_criteria": ["a", "b"], "depends_on": [],
             "checks": [{"name": "unit", "run": "cargo test", "timeout_seconds": 60}, "make lint"]},
            {"id": "login", "name": "Login", "depends_on": ["tables"], "category": "functional", "approval": true}]}),
        &[
            "tables|Tables|d|3|completed/true/2026-01-18T00:00:00|a;b||unit=cargo \
             test,check-2=make lint",
            "login|Login||0|pending/false/-||tables|",
        ],
    );
}

#[test]
fn the_quickstart_shape_gets_ids_from_the_descriptions() {
    let mut document = json!([
        {"category": "functional", "description": "User can log in with e-mail and password, and is then shown the start page", "steps": ["open", "type"], "passes": false},
        {"category": "style", "description": "Tudo em português, já!", "steps": [], "passes": true},
        {"category": "style", "description": "Tudo em português, já!", "passes": false},
        {"description": "登录", "passes": false}]);
    let expected = [
        "user-can-log-in-with-e-mail-and-password|User can log in with e-mail and password, and \
         is then shown the start page|User can log in with e-mail and password, and is then shown \
         the start page|0|pending/false/-|open;type||",
        "tudo-em-portugues-ja|Tudo em português, já!|Tudo em português, já!|0|completed/true/-|||",
        "tudo-em-portugues-ja-2|Tudo em português, já!|Tudo em português, já!|0|pending/false/-|||",
        "feature-4|登录|登录|0|pending/false/-|||",
        "no id: one was made from the name or the description (entry 1 -> \
         `user-can-log-in-with-e-mail-and-password`, entry 2 -> `tudo-em-portugues-ja`, entry 3 \
         -> `tudo-em-portugues-ja-2` and 1 more)",
    ];
    check_read(&document, &expected);
    let before: Vec<FeatureId> =
        list(&document).features().iter().map(|feature| feature.id.clone()).collect();
    document
        .as_array_mut()
        .unwrap()
        .push(json!({"description": "Tudo em português, já! 2", "passes": false}));
    let after: Vec<FeatureId> =
        list(&document).into_features().into_iter().map(|feature| feature.id).collect();
    assert_eq!(after[..4], before, "ids stay when entries are appended");
    assert_eq!(after[4], id("tudo-em-portugues-ja-2-2"));
}

#[test]
fn the_seed_shapes_depend_by_name() {
    check_read(
        &json!({"meta": {"created": "x", "lastModified": "y", "version": 1}, "items": [
            {"name": "User Login", "status": "in_progress", "passes": false, "lastTested": "soon", "dependencies": ["Tables"]},
            {"name": "Tables", "status": "done", "passes": false, "lastTested": null}]}),
        &[
            "user-login|User Login||0|in_progress/false/soon||tables|",
            "tables|Tables||0|completed/false/-|||",
            "last tested at `soon`: not a date (entry 1)",
            "the status `done` is read as completed (entry 2)",
            "the status completed and passes = false contradict each other: neither is believed \
             (entry 2)",
            "no id: one was made from the name or the description (entry 1 -> `user-login`, entry \
             2 -> `tables`)",
        ],
    );
}

#[test]
fn wild_shapes_are_read_with_notes() {
    check_read(
        &json!({"rules": {}, "verify": "make test", "features": [
            {"id": 1, "title": "A", "acceptance": "one", "status": "failing", "wave": 2, "verification_command": "./a.sh"},
            {"id": 2, "title": "B", "dependencies": [1, "1"], "state": "odd", "priority": "high", "verification_steps": ["v"]},
            {"id": "us-3", "title": "C", "dependsOn": "US-3b", "deprecated": true, "priority": null},
            {"id": "us-3B", "title": "D", "sdd": 1}]}),
        &[
            "1|A||0|pending/false/-|one||check=./a.sh",
            "2|B||1|pending/false/-|v|1|verify=make test",
            "us-3|C||0|blocked/false/-||us-3B|verify=make test",
            "us-3B|D||0|pending/false/-|||verify=make test",
            "the status `failing` is read as pending (entry 1 `1`)",
            "the status `odd` is not known, read as pending (entry 2 `2`)",
            "the priority \"high\" is read as 1 (entry 2 `2`)",
            "deprecated: read as blocked (entry 3 `us-3`)",
            "keys that are not read, and are kept as they are: sdd, wave",
            "a dependency is named twice: it counts once (entry 2 `2`)",
            "the dependency `US-3b` is read as `us-3B` (entry 3 `us-3`)",
            "no check: the `verify` command of the list is taken (`2`, `us-3`, `us-3B`)",
        ],
    );
    check_read(
        &json!({"userStories": [{"id": "US-001", "title": "A", "acceptanceCriteria": ["x"], "priority": 1, "passes": false}]}),
        &[
            "US-001|A||-1|pending/false/-|x||",
            "a small number in `priority` is read as sooner, as in user stories (entry 1 `US-001`)",
        ],
    );
}

#[test]
fn what_is_no_list_is_refused() {
    check_refused(
        "[{]",
        "the feature list is not JSON: key must be a string (line 1, column 3); correct it there, \
         or take the last good version back from git",
    );
    let advice = "write an array of features, or an object with the array under `features`";
    check_refused("7", &format!("the feature list has no entries: found 7; {advice}"));
    let keys = r#"{"tests": "e2e/", "a": 1}"#;
    check_refused(
        keys,
        &format!(
            "the feature list has no entries: found an object with the keys [tests, a]; {advice}"
        ),
    );
    assert_eq!(FeatureList::parse("\u{feff}[]").unwrap().features(), []);
}

#[test]
fn all_problems_are_named_at_once() {
    let document = json!([
        {"id": "a", "name": "A", "depends_on": ["zz", "a"]},
        {"id": "A", "description": 7, "describen": "x"},
        {"id": "../x", "name": "X", "priority": 1.5, "steps": [1], "passes": "yes", "checks": {"name": "c"}},
        "text",
        {"id": true, "name": "Same", "status": 3, "depends_on": ["Same", {"id": 1}]},
        {"name": "Same", "lastTested": 4, "checks": [{"name": "c", "run": "r", "timeout": 0}]}]);
    check_refused(
        &document.to_string(),
        "the feature list has 17 problems:\n\
         - entry 1 (`a`), `depends_on`: \"zz\" is no id and no name of another entry; add that \
         feature, correct the id, or take the dependency out\n\
         - entry 1 (`a`), `depends_on`: \"a\" is the entry itself; take it out: a feature cannot \
         wait for itself\n\
         - entry 2 (`A`), `description`: found 7; write a text\n\
         - entry 2 (`A`), `name`: missing, and so is `description` (keys found: id, description, \
         describen); write one of them\n\
         - entry 2 (`A`), `id`: \"A\" is taken: entry 1 `a` has it (capital letters do not \
         count); give one of the two another id\n\
         - entry 3 (`../x`), `passes`: found \"yes\"; write true or false\n\
         - entry 3 (`../x`), `priority`: found 1.5; write a whole number, higher for sooner, or \
         one of critical, high, medium, low\n\
         - entry 3 (`../x`), `steps`: found 1; write a text or an array of texts\n\
         - entry 3 (`../x`), `checks`: found {\"name\":\"c\"}; write a shell command, or \
         {\"name\", \"run\", \"timeout_seconds\"} with a whole number of seconds above 0\n\
         - entry 3 (`../x`), `id`: found \"../x\": only ASCII letters, digits and . _ - are \
         allowed; write at most 64 ASCII letters, digits and . _ -, beginning with a letter or a \
         digit\n\
         - entry 4, `entry`: found \"text\"; write an object with at least a `name` or a \
         `description`\n\
         - entry 5, `id`: found true; write a text or a whole number\n\
         - entry 5, `status`: found 3; write a text\n\
         - entry 5, `depends_on`: found {\"id\":1}; write an array of ids or names of other \
         entries\n\
         - entry 5, `depends_on`: \"Same\" is the name of `same` and of `same-2`; name the \
         dependency by its id\n\
         - entry 6, `lastTested`: found 4; write a text\n\
         - entry 6, `checks`: found {\"name\":\"c\",\"run\":\"r\",\"timeout\":0}; write a shell \
         command, or {\"name\", \"run\", \"timeout_seconds\"} with a whole number of seconds \
         above 0",
    );
}

#[test]
fn states_are_written_in_the_shape_of_the_file() {
    use FeatureStatus::{Completed, InProgress, Pending};
    check_states(
        &json!({"z": 1, "features": [{"z": [], "id": "a", "status": "pending", "name": "A", "y": null}, {"id": "b", "name": "B"}]}),
        &[("a", Completed, true, Some(NOW)), ("b", Pending, false, None)],
        &json!({"z": 1, "features": [
            {"z": [], "id": "a", "status": "completed", "name": "A", "y": null, "passes": true, "last_tested": NOW},
            {"id": "b", "name": "B", "status": "pending", "passes": false}]}),
    );
    check_states(
        &json!([{"description": "A", "steps": ["s"], "passes": false}, {"description": "B", "passes": false, "lastTested": null}]),
        &[("a", InProgress, false, Some(NOW)), ("b", Completed, true, Some(NOW))],
        &json!([{"description": "A", "steps": ["s"], "passes": false}, {"description": "B", "passes": true, "lastTested": NOW}]),
    );
    check_states(
        &json!({"meta": {"created": "x", "lastModified": "y", "version": 1}, "items": [{"name": "A", "status": "done", "passes": false}]}),
        &[("a", Completed, true, Some(NOW))],
        &json!({"meta": {"created": "x", "lastModified": NOW, "version": 1}, "items": [{"name": "A", "status": "done", "passes": true, "lastTested": NOW}]}),
    );
    let mut list = list(&json!([{"id": "a", "name": "A"}]));
    let state = EntryState { status: Pending, passes: false, last_tested: None };
    assert!(!list.set_states(&BTreeMap::from([(id("gone"), state)]), NOW));
}

#[test]
fn tampering_is_shown_and_flips_apart_from_it() {
    let before = json!({"project_name": "p", "features": [
        {"id": "a", "name": "A", "description": "The page shows all of the orders of the customer", "steps": ["1", "2"], "passes": false, "status": "pending"},
        {"id": "b", "name": "B", "x": {"k": 1}, "passes": false},
        {"id": "c", "name": "C", "passes": false}]});
    check_edits(&before, &before, &[], &[]);
    let after = json!({"project_name": "q", "last_updated": "now", "features": [
        {"id": "d", "name": "D"},
        {"id": "b", "name": "B", "x": {"k": 2}, "passes": true, "last_tested": "z"},
        {"id": "a", "name": "A", "description": "The page shows all of the goods", "steps": ["1"], "passes": true, "status": "completed", "note": "n"}]});
    check_edits(
        &before,
        &after,
        &[
            "the list: `project_name` reworded: \"p\" -> \"q\"",
            "`a`: `description` reworded: \"…page shows all of the orders of the customer\" -> \
             \"…page shows all of the goods\"",
            "`a`: `steps` changed: -\"2\"",
            "`a`: `note` added: \"n\"",
            "`b`: `x` changed: {\"k\":1} -> {\"k\":2}",
            "`c`: removed",
            "`d`: added",
            "the list: the entries were put into another order",
        ],
        &[
            "`a`: `passes` false -> true, `status` pending -> completed",
            "`b`: `passes` false -> true, `status` pending -> completed",
        ],
    );
    check_edits(
        &json!([{"description": "one", "passes": false}, {"description": "two", "passes": false}]),
        &json!([{"description": "one", "passes": false}, {"description": "zwei", "passes": true}]),
        &["`two`: `description` reworded: \"two\" -> \"zwei\""],
        &["`two`: `passes` false -> true, `status` pending -> completed"],
    );
    check_edits(&json!([]), &json!({"features": []}), &["the list: it has another shape"], &[]);
}

#[test]
fn entries_are_added_in_the_shape_of_the_file() {
    let feature = Feature {
        description: "Find things".into(),
        acceptance_criteria: vec!["fast".into()],
        depends_on: vec![id("a")],
        priority: 4,
        ..Feature::new(id("search"), "Search")
    };
    check_added(
        &json!({"features": [{"id": "a", "title": "A", "acceptance": ["x"], "state": "todo", "dependencies": []}]}),
        &feature,
        &json!({"id": "search", "title": "Search", "description": "Find things", "state": "pending", "priority": 4, "acceptance": ["fast"], "dependencies": ["a"]}),
    );
    check_added(
        &json!([{"name": "A", "status": "pending", "passes": false, "dependencies": []}]),
        &feature,
        &json!({"name": "Search", "description": "Find things", "status": "pending", "passes": false, "priority": 4, "acceptance_criteria": ["fast"], "dependencies": ["A"]}),
    );
    let plain = Feature::new(id("more"), "More");
    check_added(
        &json!([{"category": "style", "description": "A", "steps": [], "passes": false}]),
        &plain,
        &json!({"description": "More", "passes": false}),
    );
    let other_id = Feature { id: id("x-1"), ..plain.clone() };
    check_added(
        &json!([{"description": "A", "passes": false}]),
        &other_id,
        &json!({"id": "x-1", "description": "More", "passes": false}),
    );
    let number = Feature { id: id("2"), depends_on: vec![id("1")], ..plain.clone() };
    check_added(
        &json!([{"id": 1, "name": "A", "status": "pending"}]),
        &number,
        &json!({"id": 2, "name": "More", "status": "pending", "depends_on": [1]}),
    );
    let mut list = list(&json!([{"id": "a", "name": "A"}]));
    let before = list.clone();
    let taken = list.add(&Feature { id: id("A"), ..plain }).unwrap_err().to_string();
    assert!(taken.contains("entry 2 (`A`), `id`: \"A\" is taken: entry 1 `a` has it"), "{taken}");
    assert_eq!(list, before);
}

#[test]
fn a_created_list_is_read_as_what_it_was_made_of() {
    let tables = Feature {
        priority: 2,
        approval: true,
        category: Some("db".into()),
        ..Feature::new(id("tables"), "Tables")
    };
    let login = Feature {
        depends_on: vec![id("tables")],
        last_tested: Some(NOW.into()),
        ..Feature::new(id("login"), "Login")
    };
    let features = [tables, login];
    let list = FeatureList::create("shop", &features).unwrap();
    assert_eq!((list.features(), list.notes()), (&features[..], &[][..]));
    assert!(list.to_text().starts_with(
        "{\n  \"project_name\": \"shop\",\n  \"features\": [\n    {\n      \"id\": \"tables\""
    ));
}

#[test]
fn a_list_in_utf_16_is_read() {
    let text = "\u{feff}{\"features\": [{\"id\": \"a\", \"name\": \"Größe\"}]}";
    let little: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let big: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
    for bytes in [little, big, text.as_bytes().to_vec()] {
        assert_eq!(FeatureList::from_bytes(&bytes).unwrap().features()[0].name, "Größe");
    }
    let error = FeatureList::from_bytes(b"{\n\xff").unwrap_err().to_string();
    assert!(
        error.contains("neither UTF-8 nor UTF-16 text, or has a NUL character (line 2"),
        "{error}"
    );
}

#[test]
fn a_key_that_is_twice_in_one_object_is_refused_with_its_place() {
    let cases = [
        ("{\"features\": [],\n\"features\": []}", "features", 2),
        (
            "{\"features\": [\n{\"id\": \"a\", \"name\": \"A\", \"checks\": \
             [\"false\"],\n\"checks\": []}]}",
            "checks",
            3,
        ),
        ("[{\"id\": \"a\", \"name\": \"A\", \"note\": {\"by\": 1, \"by\": 2}}]", "by", 1),
    ];
    for (text, key, expected) in cases {
        match FeatureList::parse(text) {
            Err(ListError::NotJson { line, reason, .. }) => {
                assert_eq!(line, expected, "{text}");
                assert!(reason.starts_with(&format!("the key `{key}` is twice")), "{reason}");
            }
            read => panic!("{text}: {read:?}"),
        }
    }
}

#[test]
fn a_nul_character_is_refused_where_it_is() {
    let nul = "a text has a NUL character (`\\u0000`): remove it";
    for entry in [
        r#""id": "a\u0000""#,
        r#""name": "a\u0000""#,
        r#""description": "\u0000""#,
        r#""checks": ["true", "tr\u0000ue"]"#,
        r#""checks": [{"run": "true", "name": "\u0000"}]"#,
        r#""unread\u0000": 1"#,
    ] {
        let text = format!("{{\"features\": [\n{{\"name\": \"b\"}},\n{{{entry}}}]}}");
        let error = FeatureList::parse(&text).unwrap_err().to_string();
        assert!(error.contains(nul) && error.contains("(line 3, column "), "{entry}: {error}");
    }
    let error = FeatureList::from_bytes(b"[\n\"a\0\"]").unwrap_err().to_string();
    assert!(error.contains("line 2"), "{error}");
}
