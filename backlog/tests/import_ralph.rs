//! User stories and other lists with criteria as objects, and keys that hold commands or sentences.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use longhaul_backlog::FeatureList;
use longhaul_backlog::import::{self, Item, Options, Shape};

fn items(text: &str) -> Vec<Item> {
    import::read(text, &Options::default()).unwrap().items
}

/// `criteria | checks` of an item.
fn line(item: &Item) -> String {
    let checks: Vec<&str> = item.feature.checks.iter().map(|check| check.run.as_str()).collect();
    format!("{} | {}", item.feature.acceptance_criteria.join("; "), checks.join("; "))
}

#[test]
fn criteria_as_objects_become_criteria_and_checks() {
    let text = r#"{"project": "tui", "userStories": [{"id": "US-001", "title": "Log in", "priority": 1,
        "acceptanceCriteria": [
            {"id": "AC-1", "text": "the form is shown", "testCommand": "npm test -- form", "passes": false},
            {"id": "AC-2", "description": "errors are named", "passes": false},
            {"testCommand": "grep -q login src/app.ts"},
            "a plain one"],
        "passes": false, "notes": "see docs"}]}"#;
    let items = items(text);
    assert_eq!(
        line(&items[0]),
        "the form is shown; errors are named; `grep -q login src/app.ts` succeeds; a plain one | npm test -- form; grep -q login src/app.ts"
    );
    assert_eq!(items[0].extra["ralph_acceptanceCriteria"][0]["id"], "AC-1");
    let mut list = FeatureList::create("p", &[]).unwrap();
    let imported = import::read(text, &Options::default()).unwrap();
    import::merge(&mut list, &imported, false).unwrap();
    let again = FeatureList::parse(&list.to_text()).unwrap();
    assert_eq!(again.features()[0].checks.len(), 2, "{}", list.to_text());
    assert_eq!(again.features()[0].extra["notes"], "see docs", "an agent gets the kept keys");
}

#[test]
fn stories_and_snake_case_are_read() {
    for key in ["stories", "user_stories"] {
        let text = format!(
            r#"{{"project_name": "x", "{key}": [{{"id": "S1", "title": "One", "acceptance_criteria": ["ok"],
               "depends_on": ["S2"], "priority": 2, "passes": false}}, {{"id": "S2", "title": "Two", "priority": 1, "passes": true}}]}}"#
        );
        let imported = import::read(&text, &Options::default()).unwrap();
        assert_eq!(imported.shape, Shape::Ralph);
        let priorities: Vec<i64> =
            imported.items.iter().map(|item| item.feature.priority).collect();
        assert_eq!(priorities, [-2, -1]);
        assert_eq!(imported.items[0].feature.depends_on[0].as_str(), "S2");
    }
}

#[test]
fn verification_becomes_criteria_or_checks() {
    let list = |key: &str, value: &str| {
        items(&format!(
            r#"{{"project": "p", "features": [{{"id": "a", "title": "A", "{key}": {value}}}]}}"#
        ))
        .remove(0)
    };
    assert_eq!(
        line(&list("verification_script", r#""cargo build -p core""#)),
        " | cargo build -p core"
    );
    assert_eq!(line(&list("verification_script", r#""UI check by eye""#)), "UI check by eye | ");
    assert_eq!(
        line(&list(
            "verification",
            r#"["npm run build", "The page is shown", "./check.sh --all"]"#
        )),
        "The page is shown | npm run build; ./check.sh --all"
    );
    assert_eq!(
        line(&list("verification", r#""npm run build + preview manual""#)),
        "npm run build + preview manual | "
    );
    let item = list(
        "verification",
        r#"{"command": "make check", "description": "all green", "by": "ci"}"#,
    );
    assert_eq!(line(&item), "all green | make check");
    assert_eq!(item.extra["list_verification"]["by"], "ci");
    assert_eq!(
        line(&list("tests", r#"["tests/a.test.ts", "pytest tests/b.py"]"#)),
        "The tests in `tests/a.test.ts` pass | pytest tests/b.py"
    );
    assert_eq!(line(&list("testCommand", r#""npm test""#)), " | npm test");
}
