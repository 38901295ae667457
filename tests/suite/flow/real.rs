//! The same with the command, git and an agent.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use chrono::{DateTime, Utc};
use longhaul_tests::command::{Longhaul, Output, Running};
use longhaul_tests::project::{Plan, Project, plain};
use longhaul_tests::wait::until;
use serde_json::{Value, json};

struct World {
    project: Project,
    longhaul: Longhaul,
    root: String,
}

impl World {
    fn new(plans: &[Plan]) -> Self {
        let project = Project::new(plans, 0.0);
        let longhaul = Longhaul::new(env!("CARGO_BIN_EXE_longhaul-under-test"), project.home());
        let root = project.root().to_string_lossy().into_owned();
        Self { project, longhaul, root }
    }

    fn run(&self) -> Output {
        self.longhaul.call(&["run", &self.root])
    }

    fn begin(&self) -> Running {
        self.longhaul.begin(&["run", &self.root], &self.project.place().join("output"))
    }

    /// A verb that takes features of the project.
    fn tell(&self, words: &[&str]) -> Output {
        self.longhaul.call(&[words, &["--dir", &self.root]].concat())
    }

    fn line(&self, feature: &str) -> Value {
        let status = self.longhaul.status(Path::new(&self.root));
        let lines = status["features"].as_array().cloned().unwrap_or_default();
        lines.into_iter().find(|line| line["id"] == feature).unwrap_or_default()
    }

    /// Changes the entry of a feature in the list; without an answer the entry is removed.
    fn edit(&self, feature: &str, change: impl Fn(Value) -> Option<Value>) {
        let mut list: Value =
            serde_json::from_str(&self.project.read("feature_list.json")).unwrap();
        let entries = list["features"].as_array().cloned().unwrap();
        let edited = entries
            .into_iter()
            .filter_map(|entry| if entry["id"] == feature { change(entry) } else { Some(entry) });
        list["features"] = Value::Array(edited.collect());
        self.write_list(&list);
    }

    fn write_list(&self, list: &Value) {
        let place = self.project.root().join("feature_list.json.new");
        fs::write(&place, serde_json::to_string_pretty(list).unwrap() + "\n").unwrap();
        fs::rename(place, self.project.root().join("feature_list.json")).unwrap();
    }

    fn session_runs(&self, feature: &str) -> Vec<(String, u32)> {
        let marks = self.project.marks().into_iter().map(|mark| mark.session);
        marks.filter(|(run, _)| run.contains(&format!("/{feature}/"))).collect()
    }
}

#[test]
fn work_on_the_branch_of_a_claimed_feature_lands_before_it_passes() {
    let world = World::new(&[plain("parser", &[], 1)]);
    world.edit("parser", |mut entry| {
        entry["passes"] = true.into();
        entry["status"] = "completed".into();
        Some(entry)
    });
    world.project.commit("Say that it passes");
    world.project.git(&["checkout", "--quiet", "-b", "longhaul/parser"]);
    world.project.write("parser.txt", "finished\n");
    world.project.commit("Finish the parser");
    world.project.git(&["checkout", "--quiet", "main"]);
    world.run().exits(0);
    assert_eq!(world.project.read("parser.txt"), "finished\n");
    assert!(world.session_runs("parser").is_empty(), "the work was there");
    let commit = world.line("parser")["commit"].as_str().unwrap_or_default().to_owned();
    world.project.git(&["merge-base", "--is-ancestor", &commit, "main"]);
}

#[test]
fn a_claim_passes_with_the_commit_of_the_target() {
    let world = World::new(&[plain("parser", &[], 1)]);
    world.project.write("parser.txt", "finished\n");
    world.edit("parser", |mut entry| {
        entry["passes"] = true.into();
        Some(entry)
    });
    world.project.commit("Import what is done");
    world.run().exits(0);
    assert_eq!(world.line("parser")["commit"], world.project.git(&["rev-parse", "main"]));
    assert!(world.session_runs("parser").is_empty());
    assert_eq!(world.project.git(&["branch", "--list", "longhaul/*"]), "");
}

#[test]
fn a_new_feature_under_an_old_id_joins_no_old_run() {
    let world = World::new(&[plain("parser", &[], 1), plain("table", &[], 1)]);
    world.run().exits(0);
    world.edit("parser", |_| None);
    world.project.commit("No parser");
    world.run().exits(0);
    let list: Value = serde_json::from_str(&world.project.read("feature_list.json")).unwrap();
    let mut with = list.clone();
    let parser = json!({"id": "parser", "name": "Another parser", "checks": ["false"]});
    with["features"].as_array_mut().unwrap().push(parser);
    world.write_list(&with);
    world.project.commit("Another parser");
    world.run().exits(1);
    let line = world.line("parser");
    assert_eq!(
        (&line["passes"], line["run"].as_str().map(|run| run.ends_with("/parser/2"))),
        (&false.into(), Some(true))
    );
}

#[test]
fn the_list_of_an_older_commit_and_back_pays_for_nothing_twice() {
    let world = World::new(&[plain("table", &[], 1)]);
    world.project.write_list(&[plain("table", &[], 1), plain("parser", &[], 1)]);
    world.project.write("plan/parser", "steps=1 pause=0 habit=plain\n");
    world.project.commit("Ask for a parser");
    world.run().exits(0);
    let newer = world.project.read("feature_list.json");
    world.edit("parser", |_| None);
    world.run();
    world.project.write("feature_list.json", &newer);
    world.run().exits(0);
    assert_eq!(world.line("parser")["passes"], true);
    assert_eq!(world.session_runs("parser").len(), 1);
}

#[test]
fn a_block_that_is_lifted_at_once_has_no_two_agents_at_work() {
    // The other feature keeps the command going when the block has taken effect before it is
    // lifted.
    let world = World::new(&[plain("parser", &[], 2), plain("table", &[], 1)]);
    world.project.hold("parser");
    world.project.hold("table");
    let mut run = world.begin();
    world.project.until_at_work("parser");
    world.project.until_at_work("table");
    world.tell(&["feature", "block", "parser", "--why", "too early"]).exits(0);
    world.tell(&["feature", "unblock", "parser"]).exits(0);
    until("a second session has begun", || world.session_runs("parser").len() == 2);
    world.project.let_go("parser");
    world.project.let_go("table");
    run.exits(0);
    let mut marks = world.project.marks();
    marks.retain(|mark| mark.session.0.contains("/parser/"));
    marks.sort_by_key(|mark| mark.began);
    assert_eq!((marks.len(), marks[0].ended, marks[1].ended), (2, false, true), "{marks:#?}");
    assert_ne!(marks[0].session.0, marks[1].session.0);
    let list = world
        .longhaul
        .call(&["list", "--feature", "parser", "--kind", "feature", "--all", "-o", "json"])
        .exits(0)
        .json();
    let mut lives: Vec<[DateTime<Utc>; 2]> =
        list["runs"].as_array().unwrap().iter().map(life).collect();
    lives.sort();
    assert!(
        lives[0][1] <= lives[1][0],
        "the second run began before the first one had ended: {list:#}"
    );
    let landed: BTreeSet<String> = world.project.landed("main").into_iter().collect();
    assert_eq!(landed, ["parser".to_owned(), "table".to_owned()].into());
}

/// When a run began and ended.
fn life(run: &Value) -> [DateTime<Utc>; 2] {
    ["started_at", "ended_at"].map(|name| run[name].as_str().unwrap().parse().unwrap())
}

#[test]
fn the_agent_of_a_feature_that_is_removed_is_ended_and_the_others_land() {
    let world = World::new(&[plain("parser", &[], 2), plain("table", &[], 1)]);
    world.project.hold("parser");
    let mut run = world.begin();
    world.project.until_at_work("parser");
    world.edit("parser", |_| None);
    run.exits(0);
    assert!(world.longhaul.left_over().is_empty());
    assert_eq!(world.project.landed("main"), ["table"]);
    world.project.let_go("parser");
}

#[test]
fn a_signal_that_its_run_could_not_read_is_refused() {
    let world = World::new(&[plain("parser", &[], 1)]);
    world.run().exits(0);
    world
        .longhaul
        .call(&["signal", &world.root, "block", "\"a\""])
        .exits(2)
        .says(r#"{"feature": "FEATURE", "reason": TEXT}"#);
    world
        .longhaul
        .call(&["signal", &world.root, "merge_lease_released", "\"parser\""])
        .exits(2)
        .says("Longhaul's own");
    world.longhaul.call(&["signal", &world.root, "stop"]).exits(2).says("takes `sync`, `reload`");
    world.run().exits(0);
}

#[test]
fn a_paused_feature_with_the_merge_lease_blocks_no_other() {
    let world = World::new(&[plain("parser", &[], 1), plain("table", &[], 1)]);
    let place = world.project.place();
    let (hold, merging) = (place.join("hold-merge"), place.join("merging"));
    let check = format!(
        "case $PWD in *.integrate*) touch {}; while [ -e {} ]; do sleep 0.05; done;; esac; grep -q finished parser.txt",
        merging.display(),
        hold.display()
    );
    world.edit("parser", |mut entry| {
        entry["checks"] = json!([check]);
        Some(entry)
    });
    let settings = world.project.read("longhaul.toml");
    world.project.write("longhaul.toml", &format!("{settings}\n[merge]\nrepeat_gates = true\n"));
    world.project.commit("Hold the merge");
    fs::write(&hold, "").unwrap();
    world.project.hold("table");
    let mut run = world.begin();
    until("it merges", || merging.exists());
    world.tell(&["pause", "parser"]).exits(0);
    fs::remove_file(&hold).unwrap();
    until("it is paused", || {
        world.line("parser")["reason"].as_str().is_some_and(|reason| reason.contains("paused by"))
    });
    world.project.let_go("table");
    run.exits(3);
    assert_eq!(world.project.landed("main"), ["table"]);
    world.tell(&["resume", "parser"]).exits(0);
    world.run().exits(0);
    assert_eq!(world.project.landed("main"), ["parser", "table"]);
    assert_eq!(world.session_runs("parser").len(), 1);
}

#[test]
fn a_repository_belongs_to_one_data_directory() {
    let world = World::new(&[plain("parser", &[], 1)]);
    world.run().exits(0);
    let other = Longhaul::new(
        env!("CARGO_BIN_EXE_longhaul-under-test"),
        world.project.place().join("other"),
    );
    let home = world.project.home();
    other
        .call(&["run", &world.root])
        .exits(2)
        .says(&format!("belongs to the log in {}", home.display()));
    assert_eq!(world.session_runs("parser").len(), 1, "nothing is paid for twice");
    other.call(&["run", "--take-over", &world.root]).exits(0);
    world.run().exits(2).says("--take-over");
    let id = world.project.git(&["config", "longhaul.id"]);
    world
        .longhaul
        .call(&["restart", &format!("{id}/parser/1")])
        .exits(2)
        .says("belongs to the log in");

    // A data directory that was moved is still the same.
    let moved = world.project.place().join("moved");
    fs::rename(other.home(), &moved).unwrap();
    Longhaul::new(env!("CARGO_BIN_EXE_longhaul-under-test"), &moved)
        .call(&["run", &world.root])
        .exits(0);
}
