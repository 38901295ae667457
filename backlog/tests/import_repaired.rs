//! Files with bad entries: problems are grouped, and options import the rest.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::fmt::Write as _;

use longhaul_backlog::FeatureList;
use longhaul_backlog::import::{self, Imported, Options};

fn list_of(imported: &Imported) -> FeatureList {
    let mut list = FeatureList::create("p", &[]).unwrap();
    import::merge(&mut list, imported, false).unwrap();
    list
}

fn ids(imported: &Imported) -> Vec<&str> {
    imported.items.iter().map(|item| item.feature.id.as_str()).collect()
}

/// Issues of a tracker whose earlier issues are gone.
fn issues(count: usize, dangling: usize) -> String {
    (0..count).fold(String::new(), |mut text, number| {
        let target = if number < dangling { "old" } else { "bd" };
        let target = format!("{target}-{}", (number + 1) % count);
        let links = format!(r#"[{{"depends_on_id": "{target}", "type": "blocks"}}]"#);
        let links = if number < dangling { links } else { "[]".to_owned() };
        writeln!(text, r#"{{"id": "bd-{number}", "title": "N{number}", "issue_type": "task", "status": "open", "dependencies": {links}}}"#)
            .unwrap();
        text
    })
}

#[test]
fn dangling_links_are_grouped_and_dropped_on_request() {
    let text = issues(700, 21);
    let error = import::read(&text, &Options::default()).unwrap_err().to_string();
    let lines: Vec<&str> = error.lines().collect();
    assert_eq!(lines[0], "the feature list has 21 problems:");
    assert_eq!(
        lines[1],
        "- `depends_on` (21 times): add that feature, correct the id, or take the dependency out"
    );
    assert_eq!(lines[2], "  line 1 (`bd-0`): \"old-1\" is no id and no name of another entry");
    assert_eq!(lines[12], "  and 11 more");
    assert_eq!(lines[13..], ["to import it anyway: --drop-dangling"]);

    let options = Options { drop_dangling: true, ..Options::default() };
    let imported = import::read(&text, &options).unwrap();
    assert_eq!((imported.items.len(), imported.not_mapped.len()), (700, 21));
    assert_eq!(imported.not_mapped[0].what, "the dependency of `bd-0` on `old-1`");
    assert_eq!(list_of(&imported).features().len(), 700);
}

#[test]
fn a_link_to_the_entry_itself_is_dropped_too() {
    let text = r#"[{"id": "a", "name": "A", "depends_on": ["a", "gone"]}]"#;
    let options = Options { drop_dangling: true, ..Options::default() };
    let imported = import::read(text, &options).unwrap();
    assert_eq!(imported.items[0].feature.depends_on, []);
    assert_eq!(imported.not_mapped.len(), 2);
}

#[test]
fn invalid_ids_are_grouped_and_renamed_on_request() {
    let package = |name: &str, needs: &str| {
        format!(r#"{{"id": "{name}", "name": "{name}", "depends_on": [{needs}]}}"#)
    };
    let text = [
        package("libstdc++6", ""),
        package("g++", "\"libstdc++6\""),
        package("g--", "\"G++\""),
        package("libstdc-6", "\"libstdc++6\", \"g++:amd64\""),
        package("g++:amd64", ""),
        package(&"x".repeat(70), "\"libstdc-6\""),
        package("LIBSTDC-6", ""),
    ];
    let text = format!("[{}]", text.join(","));
    let error = import::read(&text, &Options::default()).unwrap_err().to_string();
    assert!(error.contains("- /0 (`libstdc++6`), `id`: found \"libstdc++6\""), "{error}");
    assert!(
        error.contains("\nfor 5 of them: --rename-ids") || error.ends_with("--rename-ids"),
        "{error}"
    );

    let options = Options { rename_ids: true, ..Options::default() };
    let imported = import::read(&text, &options);
    // A dependency in another case is still no id.
    assert!(imported.unwrap_err().to_string().contains("\"G++\" is no id"), "only one is left");

    let options = Options { drop_dangling: true, ..options };
    let imported = import::read(&text, &options).unwrap();
    let long = "x".repeat(64);
    assert_eq!(
        ids(&imported),
        ["libstdc-6-2", "g", "g--", "libstdc-6", "g-amd64", &long, "LIBSTDC-6-3"]
    );
    let depends: Vec<String> = imported
        .items
        .iter()
        .map(|item| item.feature.depends_on.iter().map(ToString::to_string).collect::<Vec<_>>())
        .map(|ids| ids.join(" "))
        .collect();
    assert_eq!(depends, ["", "libstdc-6-2", "", "libstdc-6-2 g-amd64", "", "libstdc-6", ""]);
    assert_eq!(imported.items[0].extra["original_id"], "libstdc++6");
    let again = import::read(&text, &options).unwrap();
    assert_eq!(ids(&again), ids(&imported), "the new ids are stable");
    list_of(&imported);
}

#[test]
fn a_thousand_invalid_ids_take_a_screen() {
    let entries: Vec<String> = (0..1_133)
        .map(|number| format!(r#"{{"id": "lib{number}++", "name": "L", "status": "todo"}}"#))
        .collect();
    let text = format!("[{}]", entries.join(","));
    let error = import::read(&text, &Options::default()).unwrap_err().to_string();
    assert_eq!(error.lines().count(), 14, "{error}");
    assert!(error.starts_with("the feature list has 1133 problems:\n- `id` (1133 times): write"));
}
