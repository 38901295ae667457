//! What the commands say of directories, repositories and lists that are not as they should be, and
//! what they leave alone.

use std::fs;
use std::path::Path;

use longhaul_tests::project::{git, plain};

use crate::world::World;

fn world() -> World {
    World::new(&[plain("parser", &[], 1), plain("table", &["parser"], 1)], 0.0)
}

#[test]
fn the_agent_of_init_is_one_text_and_what_follows_is_the_directory() {
    let world = world();
    let place = world.project.place();
    let at = |name: &str| place.join(name).to_string_lossy().into_owned();
    let made =
        world.longhaul.call(&["init", "--agent", "my-agent --print 'two words'", "--", &at("one")]);
    made.exits(0).says("next: add features");
    assert!(!made.stderr.contains("name your agent"), "{}", made.stderr);
    let settings = fs::read_to_string(place.join("one/longhaul.toml")).unwrap();
    assert!(settings.contains(r#"command = ["my-agent","--print","two words"]"#), "{settings}");
    world
        .longhaul
        .call(&["init", &at("one"), "--agent", "other"])
        .exits(0)
        .says(r#"write `command = ["other"]` below [agent]"#);
    for wrong in ["a | b", "a 'b", " "] {
        world.longhaul.call(&["init", &at("two"), "--agent", wrong]).exits(2).says("--agent");
    }
    world.longhaul.call(&["init", &at("two"), "--agent", "my-agent", "--print"]).exits(2);
    assert!(!place.join("two").exists());
}

#[test]
fn init_looks_before_it_writes() {
    let world = world();
    let place = world.project.place();
    let bare = place.join("bare.git");
    git(&place, &["init", "--quiet", "--bare", &bare.to_string_lossy()]).unwrap();
    let inside = world.project.root().join("plan");
    let dir = |path: &Path| path.to_string_lossy().into_owned();
    world.longhaul.call(&["init", &dir(&bare)]).exits(2).says("bare repository");
    world
        .longhaul
        .call(&["init", &dir(&world.project.root().join(".git"))])
        .exits(2)
        .says(".git directory");
    world.longhaul.call(&["init", &dir(&inside)]).exits(2).says("a project is a whole repository");
    for dir in [bare, inside, world.project.root().join(".git")] {
        assert!(!dir.join("longhaul.toml").exists(), "{}", dir.display());
    }
}

#[test]
fn a_directory_that_is_not_there_is_named() {
    let world = world();
    world.run().exits(0);
    for command in [
        "run nodir",
        "status nodir",
        "graph nodir",
        "rollback nodir --to x",
        "feature list nodir",
        "feature add a A --dir nodir",
        "why parser --dir nodir",
        "describe parser --dir nodir",
        "history parser --dir nodir",
        "steer parser tabs --dir nodir",
        "pause --dir nodir",
    ] {
        let output = world.longhaul.call(&command.split(' ').collect::<Vec<_>>());
        assert!(
            output.exits(2).says("there is no directory nodir").stderr.lines().count() == 1,
            "{command}: {}",
            output.stderr
        );
    }
}

#[test]
fn branches_with_names_of_longhaul_are_refused_at_the_start() {
    let world = world();
    world.project.git(&["branch", "longhaul/parser"]);
    let settings = world.project.read("longhaul.toml");
    let own = settings.replacen("[project]", "[project]\ntarget = \"longhaul/parser\"", 1);
    world.project.write("longhaul.toml", &own);
    world.run().exits(2).says("the target `longhaul/parser` has a name of Longhaul's own branches");
    world.project.write("longhaul.toml", &settings);
    world.project.git(&["branch", "-m", "longhaul/parser", "longhaul"]);
    world.run().exits(2).says("rename it: git branch -m longhaul NAME");
    world.project.git(&["branch", "-d", "longhaul"]);
    world.run().exits(0);
}

#[test]
fn settings_that_no_project_can_work_with_are_refused() {
    let world = world();
    let settings = world.project.read("longhaul.toml");
    for (added, problem) in [
        ("[[gate]]\nname = 'lint'\nrun = ' '\n", "[[gate]] `lint`: `run` is empty"),
        (
            "[[baseline]]\nname = 'base'\nrun = 'true'\ntimeout_seconds = 0\n",
            "[[baseline]] `base`: `timeout_seconds` must be above 0",
        ),
    ] {
        world.project.write("longhaul.toml", &format!("{settings}\n{added}"));
        world.run().exits(2).says("longhaul.toml").says(problem);
    }
    for glob in ["../shared/**", "/etc", "tests/../../x"] {
        let with_glob =
            settings.replace("[project]", &format!("[project]\nprotected = ['{glob}']"));
        world.project.write("longhaul.toml", &with_glob);
        world.run().exits(2).says("`protected`").says(glob).says("leads out of the repository");
    }
    for hidden in [".", "/"] {
        let hides =
            settings.replace("[project]", &format!("[project]\nhidden_checks = '{hidden}'"));
        world.project.write("longhaul.toml", &hides);
        world.run().exits(2).says("`hidden_checks`").says("contains the repository");
    }
    world.project.write("longhaul.toml", &settings);
    world.run().exits(0);
}

#[test]
fn a_git_directory_may_be_at_another_place() {
    let world = world();
    let elsewhere = world.project.place().join("elsewhere").display().to_string();
    world.project.git(&["init", "--quiet", "--separate-git-dir", &elsewhere]);
    world.run().exits(0);
    assert_eq!(world.project.git(&["status", "--short"]), "");
    assert_eq!(world.json("status .")["counts"]["blocked"], 0);
    world.call("doctor .").exits(0);
}

#[test]
fn a_broken_list_is_reported() {
    let world = world();
    world.run().exits(0);
    let whole = world.project.read("feature_list.json");
    world.project.write("feature_list.json", "{\"features\": [");
    world.call("status .").exits(0).says("problem: ").says("feature_list.json");
    let list = world.call("feature list");
    list.exits(0).says("feature_list.json").says("parser");
    for command in ["status . -o json", "feature list -o json"] {
        let problem = world.call(command).exits(0).json()["problem"].clone();
        assert!(
            problem.as_str().is_some_and(|problem| problem.contains("feature_list.json")),
            "{command}: {problem}"
        );
    }
    world.project.write(
        "feature_list.json",
        &whole.replace("\"depends_on\": []", "\"depends_on\": [\"table\"]"),
    );
    world.call("status .").exits(0).says("problem: ").says("cycle");
}

#[test]
fn before_the_first_run_features_stand_as_it_will_find_them() {
    let world = world();
    let mut list: serde_json::Value =
        serde_json::from_str(&world.project.read("feature_list.json")).unwrap();
    let entries = list["features"].as_array_mut().unwrap();
    entries[0]["status"] = "blocked".into();
    entries[0]["approval"] = true.into();
    entries.push(
        serde_json::json!({ "id": "manual", "name": "A manual", "description": "", "depends_on": [], "checks": [] }),
    );
    world.project.write("feature_list.json", &list.to_string());
    world.project.commit("Ask for more");
    let states = || {
        let lines = world.json("feature list")["features"].as_array().cloned().unwrap_or_default();
        lines
            .iter()
            .map(|line| line["status"].as_str().unwrap_or_default().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(states(), ["blocked", "waiting", "blocked"]);
    world.call("feature list").exits(0).says("the list says so").says("no acceptance check");
    assert_eq!(world.json("feature next")["workable"], serde_json::json!([]));
    world.call("feature show parser").exits(0).says("approval:     a person has to agree");
    world.call("graph .").exits(0).says("✗ parser");
    world.run().exits(1);
    assert_eq!(states(), ["blocked", "waiting", "blocked"]);
}
