//! Backlogs of every shape, written in the shapes of other tools, and read back.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod backlogs;

use backlogs::{FILES, imported as read, list_of};
use longhaul_backlog::export::{self, Target};
use longhaul_backlog::import::Imported;

#[test]
fn what_is_exported_is_read_back_as_it_was() {
    for (shape, text) in FILES {
        let imported = read(text);
        let list = list_of(&imported);
        for target in Target::ALL {
            let written = export::write(&list, target, "/somewhere/p");
            let back = read(&written);
            assert_same(&imported, &back, target, &format!("{shape} as {target}:\n{written}"));
        }
    }
}

/// The same features and the same keys beside them.
fn assert_same(before: &Imported, after: &Imported, target: Target, what: &str) {
    assert_eq!(before.items.len(), after.items.len(), "{what}");
    for item in &before.items {
        let mut feature = item.feature.clone();
        if target == Target::Quickstart && feature.description.is_empty() {
            // There a feature is its description.
            feature.description.clone_from(&feature.name);
        }
        let back = after.items.iter().find(|other| other.feature.id == feature.id);
        let back = back.unwrap_or_else(|| panic!("{} is gone: {what}", feature.id));
        assert_eq!(back.feature, feature, "{what}");
        assert_eq!(back.extra, item.extra, "{what}");
    }
}

#[test]
fn an_export_has_the_words_of_its_shape() {
    let list = list_of(&read(FILES[6].1));
    let line = export::write(&list, Target::Beads, "/p").lines().nth(1).unwrap().to_owned();
    assert_eq!(
        line,
        r#"{"id":"bd-a3f8.1","title":"Printer","status":"open","priority":2,"issue_type":"task","dependencies":[{"issue_id":"bd-a3f8.1","depends_on_id":"bd-1","type":"blocks","created_at":"2026-01-01T00:00:00Z"},{"issue_id":"bd-a3f8.1","depends_on_id":"bd-1","type":"related"}]}"#
    );
    let list = list_of(&read(FILES[0].1));
    let document: serde_json::Value =
        serde_json::from_str(&export::write(&list, Target::Quickstart, "/p")).unwrap();
    let mut expected: serde_json::Value = serde_json::from_str(FILES[0].1).unwrap();
    expected[1]["passes"] = false.into();
    expected[1]["status"] = "completed".into();
    expected[1]["claimed_passes"] = true.into();
    assert_eq!(
        document, expected,
        "ids and names that follow from the descriptions are not written"
    );
    let list = list_of(&read(FILES[4].1));
    let document: serde_json::Value =
        serde_json::from_str(&export::write(&list, Target::Ada, "/p")).unwrap();
    assert_eq!(document["project_path"], "/srv/shop");
    assert_eq!(document["features"][0]["quality_gates"]["lint_command"], "make lint");
}

/// The lines of an export as JSON.
fn lines(written: &str) -> Vec<serde_json::Value> {
    written.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_claim_is_no_fact_for_another_tool() {
    let list = r#"{"features":[{"id":"a","name":"A","status":"completed","passes":false,"description":"","priority":10},
        {"id":"b","name":"B","status":"completed","passes":true,"description":"","priority":2}]}"#;
    let list = longhaul_backlog::FeatureList::parse(list).unwrap();
    let ada: serde_json::Value =
        serde_json::from_str(&export::write(&list, Target::Ada, "/p")).unwrap();
    let entry = |number: usize| &ada["features"][number];
    assert_eq!(
        (&entry(0)["status"], &entry(0)["claimed_status"]),
        (&"pending".into(), &"completed".into()),
        "{ada:#}"
    );
    assert_eq!(
        (&entry(1)["status"], &entry(1)["passes"]),
        (&"completed".into(), &true.into()),
        "{ada:#}"
    );
    let beads = lines(&export::write(&list, Target::Beads, "/p"));
    assert_eq!(
        (&beads[0]["status"], &beads[1]["status"]),
        (&"open".into(), &"closed".into()),
        "{beads:#?}"
    );
    let back = read(&export::write(&list, Target::Ada, "/p"));
    assert_eq!(back.items[0].feature.status.as_str(), "completed");
}

#[test]
fn issues_have_priorities_that_there_are_and_each_text_once() {
    let text = r#"{"id":"a","title":"A","issue_type":"task","status":"open","priority":1,"description":"Make it.","design":"With care.","acceptance_criteria":"ac"}"#;
    let list = list_of(&read(text));
    let issue = &lines(&export::write(&list, Target::Beads, "/p"))[0];
    for (key, value) in
        [("description", "Make it."), ("design", "With care."), ("acceptance_criteria", "ac")]
    {
        assert_eq!(issue[key], value, "{issue:#}");
    }
    let soon = r#"{"features":[{"id":"a","name":"A","status":"pending","passes":false,"description":"","priority":10}]}"#;
    let list = longhaul_backlog::FeatureList::parse(soon).unwrap();
    let written = export::write(&list, Target::Beads, "/p");
    let issue = &lines(&written)[0];
    assert_eq!(
        (&issue["priority"], &issue["longhaul_priority"]),
        (&0.into(), &10.into()),
        "{issue:#}"
    );
    assert_eq!(read(&written).items[0].feature.priority, 10);
    let changed = read(&written.replace("\"priority\":0", "\"priority\":3"));
    assert_eq!((changed.items[0].feature.priority, changed.items[0].extra.len()), (-1, 0));
}
