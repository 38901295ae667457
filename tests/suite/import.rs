//! Lists of other tools: imported and exported by the command, at rest and while another process
//! runs the project.

mod real;

use std::fs;
use std::path::PathBuf;

use longhaul_tests::command::{Longhaul, Output};
use longhaul_tests::project::{Plan, Project, plain};
use longhaul_tests::wait::until;
use serde_json::{Value, json};

const ADA: &str = include_str!("../../backlog/tests/backlogs/ada.json");
const BEADS: &str = include_str!("../../backlog/tests/backlogs/beads.jsonl");

/// The shapes, a file of each, and the features in it.
const FILES: [(&str, &str, &[&str]); 15] = [
    (
        "quickstart",
        include_str!("../../backlog/tests/backlogs/quickstart.json"),
        &["a-visitor-can-put-a-book-into-the-basket", "buttons-have-a-visible-focus-ring"],
    ),
    ("adk", include_str!("../../backlog/tests/backlogs/adk.json"), &["schema", "sign-up"]),
    (
        "adk-meta",
        include_str!("../../backlog/tests/backlogs/adk-meta.json"),
        &["export-csv", "import-csv"],
    ),
    ("adk-tests", include_str!("../../backlog/tests/backlogs/adk-tests.json"), &["T1"]),
    ("ada", ADA, &["tables", "search"]),
    ("ralph", include_str!("../../backlog/tests/backlogs/ralph.json"), &["US-001", "US-002"]),
    ("beads", BEADS, &["bd-1", "bd-a3f8.1"]),
    ("task-master", include_str!("../../backlog/tests/backlogs/task-master.json"), &["1", "2"]),
    ("tasks-md", include_str!("../../backlog/tests/backlogs/tasks-md.md"), &["task-1", "task-2"]),
    ("checklist", include_str!("../../backlog/tests/backlogs/checklist.md"), &["login", "logo"]),
    (
        "spec-kit",
        include_str!("../../backlog/tests/backlogs/spec-kit.md"),
        &["T001", "T002", "T003", "T004", "T010", "T011", "T012", "T020", "T030", "T031"],
    ),
    (
        "kiro",
        include_str!("../../backlog/tests/backlogs/kiro.md"),
        &["task-1", "task-2", "task-3", "task-4", "task-5"],
    ),
    (
        "junit",
        include_str!("../../backlog/tests/backlogs/junit.xml"),
        &["fix-calc-parsertest-reads-nested-brackets", "fix-calc-evaltest-divides"],
    ),
    ("github", include_str!("../../backlog/tests/backlogs/github.json"), &["issue-12", "issue-7"]),
    ("list", include_str!("../../backlog/tests/backlogs/list.json"), &["1", "2"]),
];

/// A project and the command.
struct World {
    project: Project,
    longhaul: Longhaul,
    root: String,
}

impl World {
    fn new(plans: &[Plan], pause: f32) -> Self {
        let project = Project::new(plans, pause);
        let longhaul = Longhaul::new(env!("CARGO_BIN_EXE_longhaul-under-test"), project.home());
        let root = project.root().to_string_lossy().into_owned();
        Self { project, longhaul, root }
    }

    /// A file beside the project.
    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.project.place().join(name);
        fs::write(&path, text).unwrap();
        path
    }

    /// `longhaul feature import` of a text, with more arguments.
    fn import(&self, text: &str, more: &[&str]) -> Output {
        let file = self.file("backlog", text).to_string_lossy().into_owned();
        let args = [&["feature", "import", &file, &self.root], more].concat();
        self.longhaul.call(&args)
    }

    fn list(&self) -> Value {
        serde_json::from_str(&self.project.read("feature_list.json")).unwrap()
    }

    fn ids(&self) -> Vec<String> {
        ids(&self.list()["features"])
    }
}

fn ids(entries: &Value) -> Vec<String> {
    let entries = entries.as_array().cloned().unwrap_or_default();
    entries.iter().map(|entry| entry["id"].as_str().unwrap_or_default().to_owned()).collect()
}

#[test]
fn every_shape_is_found_and_imported_once() {
    let world = World::new(&[], 0.0);
    for (shape, text, expected) in FILES {
        world.project.write_list(&[]);
        let report = world.import(text, &["-o", "json"]).exits(0).says("added").json();
        assert_eq!(
            (&report["schema"], &report["shape"]),
            (&"longhaul.feature_import/1".into(), &shape.into()),
            "{report:#}"
        );
        assert_eq!(ids(&report["added"]), expected, "{report:#}");
        assert_eq!(world.ids(), expected, "{shape}");
        let list = world.list();
        assert!(
            list["features"].as_array().unwrap().iter().all(|entry| entry["passes"] == false),
            "{list:#}"
        );

        let before = world.project.read("feature_list.json");
        let again = world.import(text, &["-o", "json"]).exits(0).says("nothing added").json();
        assert_eq!(
            (ids(&again["added"]), ids(&again["skipped"]).len()),
            (vec![], expected.len()),
            "{again:#}"
        );
        assert_eq!(world.project.read("feature_list.json"), before, "{shape}");
        world.import(text, &["--as", shape]).exits(0).says("already in the list:").says(shape);
    }
}

#[test]
fn the_report_says_what_became_of_each_key() {
    let world = World::new(&[], 0.0);
    let output = world.import(BEADS, &["--dry-run"]);
    output
        .exits(0)
        .says("beads, 2 entries")
        .says("would add:\n  bd-1  Parser")
        .says("title -> name (2)");
    output
        .says("labels (1): no field of a feature means this")
        .says("dependencies as beads_dependencies (1)");
    output.says(
        "line 2 /dependencies/1: the link to \"bd-1\": a link of the type `related` orders nothing",
    );
    output.says("would add 2 features").says("1 of 2 are said to pass");
    assert_eq!(world.ids(), Vec::<String>::new(), "a dry run writes nothing");

    let report = world.import(BEADS, &["-o", "json"]).exits(0).json();
    assert_eq!(
        report["added"][0],
        json!({ "id": "bd-1", "name": "Parser", "claimed_passes": true, "line": 1 }),
        "{report:#}"
    );
    let labels =
        report["kept_extra"].as_array().unwrap().iter().find(|kept| kept["key"] == "labels");
    assert_eq!(
        labels.unwrap(),
        &json!({ "line": 1, "pointer": "/labels", "id": "bd-1", "key": "labels", "kept_as": "labels",
                 "reason": "no field of a feature means this" })
    );
    let left = json!({ "line": 3, "what": "the issue \"bd-2\"", "reason": "it was deleted there" });
    assert_eq!(report["not_mapped"][1], left, "{report:#}");
    let list = world.list();
    assert_eq!(list["features"][0]["labels"], json!(["core"]), "{list:#}");
    assert_eq!(list["features"][0]["claimed_passes"], true, "{list:#}");
}

#[test]
fn errors_name_their_place_and_change_nothing() {
    let world = World::new(&[plain("parser", &[], 1)], 0.0);
    let before = world.project.read("feature_list.json");
    let refused = |text: &str, more: &[&str], expected: &str| {
        world.import(text, more).exits(2).says("backlog: ").says(expected);
        assert_eq!(world.project.read("feature_list.json"), before);
    };
    refused("[{\"name\": ", &[], "line 1, column 10: not JSON");
    refused("<testsuite>", &[], "not XML");
    refused("nothing of use", &[], "no backlog that is known");
    refused(
        "{\"items\": [], \"meta\": {}, \"userStories\": []}",
        &[],
        "adk-meta, ralph: name one with --as",
    );
    refused("[]", &["--as", "ralph"], "this is not ralph");
    refused(
        r#"[{"id": "a", "name": "A", "status": "todo", "depends_on": ["nobody"]}]"#,
        &[],
        "- /0 (`a`), `depends_on`: \"nobody\" is no id and no name of another entry",
    );
    refused(
        r#"[{"id": "a", "name": "A", "status": "todo", "depends_on": ["b"]},
            {"id": "b", "name": "B", "status": "todo", "depends_on": ["a"]}]"#,
        &["-o", "json"],
        "the dependencies form a cycle: a -> b -> a",
    );
    world.import("[]", &["--as", "nonsense"]).exits(2).says("possible values: quickstart");
    world
        .longhaul
        .call(&["feature", "import", "/nowhere/x.json", &world.root])
        .exits(2)
        .says("cannot read");
    world.import("[]", &[]).exits(0).says("nothing to add");
    assert_eq!(world.project.read("feature_list.json"), before);
}

#[test]
fn standard_input_is_read_and_a_list_is_made_where_there_is_none() {
    let world = World::new(&[], 0.0);
    fs::remove_file(world.project.root().join("feature_list.json")).unwrap();
    let file = world.file("in", ADA);
    let args = ["feature", "import", "-", &world.root, "-o", "json"];
    let report = world.longhaul.feed(&args, &file).exits(0).json();
    assert_eq!(report["file"], "standard input", "{report:#}");
    assert_eq!(world.ids(), ["tables", "search"]);
    let add = ["feature", "add", "more", "More", "--depends-on", "search", "--dir", &world.root];
    world.longhaul.call(&add).exits(0);
    assert_eq!(world.ids(), ["tables", "search", "more"]);
}

#[test]
fn a_checklist_that_is_the_backlog_is_not_hidden() {
    let world = World::new(&[], 0.0);
    fs::remove_file(world.project.root().join("feature_list.json")).unwrap();
    world.project.write("tasks.md", "- [ ] Login\n- [ ] Logo\n");
    world.import(ADA, &[]).exits(2).says("longhaul feature import");
    let tasks = format!("{}/tasks.md", world.root);
    world
        .longhaul
        .call(&["feature", "export", "--to", "quickstart", &world.root])
        .exits(0)
        .says("Login");
    world.longhaul.call(&["feature", "import", &tasks, &world.root]).exits(0);
    world.import(ADA, &[]).exits(0);
    assert_eq!(world.ids(), ["login", "logo", "tables", "search"]);
}

#[test]
fn a_list_is_exported_and_read_back() {
    let world = World::new(&[], 0.0);
    world.import(ADA, &[]).exits(0);
    let before = world.list();
    for target in ["quickstart", "ada", "beads"] {
        world.import(ADA, &[]).exits(0);
        let out =
            world.project.place().join(format!("out-{target}")).to_string_lossy().into_owned();
        let export = ["feature", "export", "--to", target, &world.root];
        let printed = world.longhaul.call(&export).exits(0).stdout.clone();
        world
            .longhaul
            .call(&[&export[..], &["-O", &out]].concat())
            .exits(0)
            .says("wrote 2 features");
        world.longhaul.call(&[&export[..], &["-O", &out]].concat()).exits(2).says("--force");
        world.longhaul.call(&[&export[..], &["-O", &out, "--force"]].concat()).exits(0);
        assert_eq!(fs::read_to_string(&out).unwrap(), printed, "{target}");

        world.project.write_list(&[]);
        world.longhaul.call(&["feature", "import", &out, &world.root]).exits(0);
        let (before, after) = (&before["features"], &world.list()["features"]);
        assert_eq!(after, before, "{target}");
    }
    let own = format!("{}/feature_list.json", world.root);
    let onto = ["feature", "export", "--to", "ada", &world.root, "-O", &own];
    world.longhaul.call(&onto).exits(2).says("the project's own list");
    world
        .longhaul
        .call(&["feature", "export", "--to", "junit", &world.root])
        .exits(2)
        .says("quickstart, ada, beads");
}

#[test]
fn a_list_is_imported_while_another_process_runs_the_project() {
    let world = World::new(&[plain("parser", &[], 1)], 0.0);
    world.project.hold("parser");
    let mut run =
        world.longhaul.begin(&["run", &world.root], &world.project.place().join("output"));
    let text = r#"[{"description": "A manual", "passes": true, "steps": ["read it"], "id": "manual",
                    "verification_command": "grep -q finished manual.txt"}]"#;
    world.import(text, &[]).exits(0).says("added 1 feature");
    until("it is done too", || world.project.landed("main") == ["manual"]);
    world.project.let_go("parser");
    run.exits(0);
    let mut landed = world.project.landed("main");
    landed.sort_unstable();
    assert_eq!(landed, ["manual", "parser"]);
    let list = world.list();
    let manual =
        list["features"].as_array().unwrap().iter().find(|entry| entry["id"] == "manual").unwrap();
    assert_eq!(
        (&manual["passes"], &manual["claimed_passes"]),
        (&true.into(), &true.into()),
        "{list:#}"
    );
}

#[test]
fn features_that_are_added_at_once_are_all_there() {
    let world = World::new(&[plain("parser", &[], 1)], 0.0);
    world.project.hold("parser");
    let mut run =
        world.longhaul.begin(&["run", &world.root], &world.project.place().join("output"));
    world.project.until_at_work("parser");
    let ids: Vec<String> = (0..12).map(|number| format!("feature-{number}")).collect();
    let add = |id: &String| {
        let check = "true";
        let args = ["feature", "add", id, "One of many", "--check", check, "--dir", &world.root];
        world.longhaul.begin(&args, &world.project.place().join("added"))
    };
    for mut adding in ids.iter().map(add).collect::<Vec<_>>() {
        adding.exits(0);
    }
    world.project.let_go("parser");
    run.exits(0);
    let list = world.list();
    let listed: Vec<&str> = list["features"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|entry| entry["id"].as_str())
        .collect();
    assert_eq!(listed.len(), 1 + ids.len(), "{listed:?}");
    assert!(ids.iter().all(|id| listed.contains(&id.as_str())), "{listed:?}");
}
