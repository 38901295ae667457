//! The states of runs, features and projects: the same words with the same meaning in every output.

mod shown;

use longhaul_tests::project::{Habit, Plan, plain};
use longhaul_tests::wait::until;
use serde_json::Value;

use crate::world::World;

const NEVER: Plan = Plan { id: "parser", needs: &[], steps: 1, habit: Habit::Never };
const ONCE: &str = "[project]\nparallel = 2\n[limits]\nfailed_gates = 1\n";

/// The state of a run in each output that shows it, and whether there is a reason.
#[track_caller]
fn check_state(world: &World, run: &str, expected: &str, has_reason: bool) {
    let listed = world.json("list --all");
    let listed = listed["runs"].as_array().cloned().unwrap_or_default();
    let listed = listed.into_iter().find(|line| line["run"] == run).unwrap_or_default();
    let described = world.json(&format!("describe {run}"));
    let why = world.json(&format!("why {run}"));
    for (verb, document) in [("list", &listed), ("describe", &described), ("why", &why)] {
        assert_eq!(document["status"], expected, "{verb}: {document:#}");
    }
    assert_eq!(listed["reason"].is_string(), has_reason, "{listed:#}");
    assert_eq!(listed["reason"], described["reason"]);
}

fn status(world: &World) -> Value {
    world.json("status .")
}

#[test]
fn a_project_has_its_own_states_and_their_reason() {
    let world = World::with_settings(&[NEVER, plain("table", &[], 2)], 0.0, ONCE);
    world.project.hold("table");
    let mut run = world.begin();
    world.project.until_at_work("table");
    until("a feature is blocked", || status(&world)["counts"]["blocked"] == 1);
    let id = world.project_id();
    check_state(&world, &id, "running", true);
    check_state(&world, &format!("{id}/table/1"), "running", false);
    check_state(&world, &format!("{id}/parser/1"), "blocked", true);
    world.call("pause .").exits(0);
    world.project.let_go("table");
    until("it is paused", || status(&world)["status"] == "paused");
    check_state(&world, &id, "paused", true);
    run.exits(3);

    world.call("resume .").exits(0);
    world.run().exits(1);
    check_state(&world, &id, "needs_attention", true);
    assert_eq!(status(&world)["status"], "needs_attention");
    world.call("list --status needs_attention -o ids").exits(0).says(&id);
    world.call("list --status asleep").exits(2).says("needs_attention");
}

#[test]
fn a_cancelled_project_is_not_done() {
    let world = World::with_settings(&[plain("table", &[], 2)], 0.0, ONCE);
    world.project.hold("table");
    let mut run = world.begin();
    world.project.until_at_work("table");
    world.call("cancel . --why enough").exits(0);
    run.exits(3);
    let id = world.project_id();
    check_state(&world, &id, "cancelled", true);
    check_state(&world, &format!("{id}/table/1"), "cancelled", true);
    let why = world.call(&format!("why {id}"));
    why.exits(0).says("cancelled by tester: enough");
    assert!(!why.stdout.contains("It is done"), "{}", why.stdout);
    world.project.let_go("table");
    world.run().exits(0);
    check_state(&world, &id, "done", false);
}

#[test]
fn superseded_runs_are_marked_and_never_selected() {
    let world = World::with_settings(&[NEVER], 0.0, ONCE);
    world.run().exits(1);
    let id = world.project_id();
    world.call(&format!("resume {id}/parser/1")).exits(0);
    world.run().exits(1);
    let ids = |command: &str| world.call(command).exits(0).stdout.clone();
    assert_eq!(ids("list --status blocked -o ids"), format!("{id}/parser/2\n"));
    assert_eq!(
        ids("list --status blocked --all -o ids"),
        format!("{id}/parser/2\n{id}/parser/1\n")
    );
    assert_eq!(world.json("list --status blocked")["superseded"], 1);
    world.call("list").exits(0).says("2 superseded runs not shown: --all");
    let run = format!("{id}/parser/1");
    assert_eq!(world.json(&format!("describe {run}"))["superseded_by"], format!("{id}/parser/2"));
    world.call("tree .").exits(0).says("parser/1  blocked (superseded)");
    world.call(&format!("why {run}")).exits(0).says(&format!("`longhaul why {id}/parser/2`"));
    let output = world.call("resume --filter status=blocked --yes -o json");
    let told = output.exits(0).json()["runs"].as_array().map(Vec::len);
    assert_eq!(told, Some(1));
}

#[test]
fn a_check_that_no_agent_can_pass_blocks_before_a_session_is_paid() {
    let world = World::with_settings(&[plain("parser", &[], 1)], 0.0, ONCE);
    let list = world.project.read("feature_list.json");
    let check = "sh acceptance/parser.sh";
    world.project.write("feature_list.json", &list.replace("grep -q finished parser.txt", check));
    world.project.commit("Ask for a script");
    world.run().exits(1).says("acceptance/parser.sh does not exist").says("protected");
    world.run().exits(1).says("acceptance/parser.sh does not exist");
    assert_eq!(world.project.marks().len(), 0);

    std::fs::create_dir(world.project.root().join("acceptance")).unwrap();
    world.project.write("acceptance/parser.sh", "grep -q finished parser.txt\n");
    world.project.commit("Write the script");
    world.run().exits(0);
    assert_eq!(world.project.marks().len(), 1);
}

#[test]
fn a_failed_set_up_is_reported_as_such() {
    let world = World::with_settings(&[plain("parser", &[], 1)], 0.0, ONCE);
    world.project.write("init.sh", "#!/bin/sh\necho no network >&2\nexit 3\n");
    world.project.commit("Break the set-up");
    world.run().exits(1).says("The set-up script failed");
    let why = world.json("why parser");
    let reasons = why["reasons"].as_array().cloned().unwrap_or_default();
    let of_setup = reasons.iter().find(|reason| reason["kind"] == "setup");
    let remedy = of_setup.and_then(|reason| reason["remedy"].as_str()).unwrap_or_default();
    assert!(remedy.contains("correct the script"), "{why:#}");
    assert_eq!(world.project.marks().len(), 0, "no session is paid before it works");

    world.project.write("init.sh", "#!/bin/sh\ntrue\n");
    world.project.commit("Correct the set-up");
    world.run().exits(0);
    assert_eq!(world.project.marks().len(), 1);
}

#[test]
fn a_project_whose_baseline_fails_is_not_done() {
    let baseline = "[[baseline]]\nname = \"sound\"\nrun = \"test ! -e parser.txt\"\n";
    let world = World::with_settings(&[plain("parser", &[], 1)], 0.0, &format!("{ONCE}{baseline}"));
    world.run().exits(1).says("`sound`");
    assert_eq!(status(&world)["status"], "needs_attention");
    assert!(world.project.landed("main").is_empty());
}

#[test]
fn work_that_a_person_merged_does_not_wait() {
    let world = World::with_settings(&[plain("parser", &[], 1)], 0.0, ONCE);
    world.project.write("parser.txt", "in the way\n");
    world.project.write("README.md", "changed\n");
    world.run().exits(3);
    assert_eq!(status(&world)["status"], "needs_attention");
    world.call("status --all").exits(0).says("longhaul/next");
    std::fs::remove_file(world.project.root().join("parser.txt")).unwrap();
    world.project.git(&["checkout", "--quiet", "."]);
    world.project.git(&["merge", "--quiet", "--ff-only", "longhaul/next"]);
    let after = status(&world);
    assert_eq!((&after["status"], &after["waits_on_next"]), (&"done".into(), &Value::Null));
}
