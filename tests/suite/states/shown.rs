//! Waiting runs are shown as waiting in every output.

use longhaul_tests::project::{Habit, Plan, Project, plain};
use longhaul_tests::wait::until;
use serde_json::Value;

use super::{NEVER, ONCE, check_state, status};
use crate::world::{World, id_of};

const APPROVED: &str =
    "[project]\nparallel = 2\n[limits]\nfailed_gates = 1\n[merge]\napproval = true\n";

fn without(text: &str, unwanted: &[&str]) {
    for word in unwanted {
        assert!(!text.contains(word), "`{word}` in {text}");
    }
}

#[test]
fn a_project_that_no_process_runs_waits_while_another_one_is_run() {
    let world = World::with_settings(&[plain("parser", &[], 2)], 0.0, ONCE);
    world.project.hold("parser");
    let mut run = world.begin();
    world.project.until_at_work("parser");
    run.terminate();
    run.exits(3);
    let id = world.project_id();
    check_state(&world, &id, "waiting", true);

    let other = Project::new(&[plain("table", &[], 1)], 0.0);
    other.hold("table");
    let root = other.root().to_string_lossy().into_owned();
    let mut run = world.longhaul.begin(&["run", &root], &world.project.place().join("other"));
    other.until_at_work_in(&world.project.home(), "table");
    check_state(&world, &id, "waiting", true);
    check_state(&world, &format!("{id}/parser/1"), "waiting", true);
    let document = status(&world);
    assert_eq!(document["is_running"], false);
    let counts = &document["counts"];
    assert_eq!((&counts["running"], &counts["waiting"]), (&0.into(), &1.into()), "{counts}");
    world.call("status .").exits(0).says(&format!("`longhaul run {}` continues it", world.root));
    world.call("why .").exits(0).says("No process runs it now");
    let running = world.call("list --status running -o ids").exits(0).stdout.clone();
    let of_other = id_of(&other);
    assert_eq!(running, format!("{of_other}/table/1/1\n{of_other}/table/1\n{of_other}\n"));
    other.let_go("table");
    run.exits(0);
}

#[test]
fn what_waits_for_an_agent_does_not_run() {
    let world = World::with_settings(&[plain("parser", &[], 1)], 0.0, ONCE);
    let other = Project::with_settings(&[plain("parser", &[], 1)], 0.0, ONCE);
    let root = other.root().to_string_lossy().into_owned();
    world.project.hold("parser");
    other.hold("parser");
    let mut run = world.longhaul.begin(
        &["run", &world.root, &root, "--max-agents", "1"],
        &world.project.place().join("output"),
    );
    let total = || world.json("status --all")["total"].clone();
    until("one works and one waits", || {
        let total = total();
        (&total["running"], &total["waiting"]) == (&1.into(), &1.into())
            && (!world.project.marks().is_empty() || !other.marks().is_empty())
    });
    let ids = world.call("list --status running --kind feature -o ids").exits(0).stdout.clone();
    assert_eq!(ids.lines().count(), 1, "{ids}");
    let waits = world.json("list --status waiting --kind feature");
    let reason = waits["runs"][0]["reason"].as_str().unwrap_or_default();
    assert!(reason.contains("a free place among the agents"), "{waits:#}");
    let projects = world.json("status --all")["projects"].clone();
    let states: Vec<&Value> = projects.as_array().unwrap().iter().map(|it| &it["status"]).collect();
    assert_eq!(states, ["running", "waiting"], "{projects:#}");
    world.project.let_go("parser");
    other.let_go("parser");
    run.exits(0);
}

#[test]
fn blocked_features_and_approvals_are_named_until_they_are_settled() {
    let world = World::with_settings(&[NEVER, plain("table", &[], 1)], 0.0, APPROVED);
    world.run().exits(3);
    let id = world.project_id();
    let approve = format!("`longhaul approve {id}/table/1`");
    let why = world.call("why .").exits(0).stdout.clone();
    without(&why, &["continues it"]);
    for words in ["parser is blocked: the gates failed", &approve, "waits for approval"] {
        assert!(why.contains(words), "`{words}` in {why}");
    }
    let counts = status(&world)["counts"].clone();
    let shown = ["running", "waiting", "blocked"].map(|key| counts[key].as_u64());
    assert_eq!(shown, [Some(0), Some(1), Some(1)]);
    let all = world.json("status --all");
    let reason = all["projects"][0]["reason"].as_str().unwrap_or_default().to_owned();
    assert!(reason.starts_with(&format!("table: waits for approval: {approve}")), "{reason}");
    assert!(reason.contains("; parser: "), "{reason}");

    world.call("approve table --by ann").exits(0);
    for command in ["status .", "status --all", "why .", "why table", "list"] {
        let output = world.call(command).exits(0).stdout.clone();
        without(&output, &["longhaul approve"]);
        assert!(output.to_lowercase().contains("approve by ann"), "{command}: {output}");
    }
    world.call("why table").says("continues it");
    world.run().exits(1);
    assert_eq!(world.project.landed("main"), ["table"]);
}

#[test]
fn a_cancelled_feature_is_not_blocked() {
    let world = World::with_settings(&[plain("parser", &[], 1)], 0.0, ONCE);
    world.project.hold("parser");
    let mut run = world.begin();
    world.project.until_at_work("parser");
    world.call("cancel parser --reason dear").exits(0);
    run.exits(3);
    let id = world.project_id();
    check_state(&world, &format!("{id}/parser/1"), "cancelled", true);
    let document = status(&world);
    assert_eq!(document["features"][0]["status"], "cancelled");
    assert_eq!(world.json("graph .")["features"][0]["status"], "cancelled");
    assert_eq!(world.json("why parser")["status"], "cancelled");
    let counts = &document["counts"];
    assert_eq!((&counts["cancelled"], &counts["blocked"]), (&1.into(), &0.into()));
    for command in ["status .", "status --all", "why .", "graph ."] {
        let output = world.call(command).exits(0).stdout.clone();
        without(&output.replace("BLOCKED", ""), &["blocked"]);
        assert!(output.contains("cancelled"), "{command}: {output}");
    }
}

#[test]
fn a_project_that_was_rolled_back_was_not_cancelled() {
    let world = World::with_settings(&[plain("parser", &[], 1)], 0.0, ONCE);
    world.run().exits(0);
    let base = world.project.git(&["rev-list", "--max-parents=0", "main"]);
    world.call(&format!("rollback . --to {base} --yes")).exits(0);
    let id = world.project_id();
    check_state(&world, &id, "waiting", true);
    for command in ["status .", "status --all", "why ."] {
        let output = world.call(command).exits(0).stdout.clone();
        without(&output, &["cancelled", "stopped"]);
        assert!(output.contains("rolled back to") && output.contains("by tester"), "{output}");
    }
    world.call("status .").says("continues it");
    // While it is paused, it is only told to resume.
    world.call("pause .").exits(0);
    without(&world.call("why .").exits(0).stdout, &["continues it"]);
    world.run().exits(3);
    for command in ["why .", "why parser"] {
        let why = world.call(command).exits(0).stdout.clone();
        assert!(why.contains("rolled back to") && why.contains("resumes it"), "{why}");
        without(&why, &["continues it", "longhaul run"]);
    }
    world.call("resume .").exits(0);
    // A later cancellation is one.
    world.project.hold("parser");
    let mut run = world.begin();
    world.project.until_at_work("parser");
    world.call("cancel .").exits(0);
    run.exits(3);
    check_state(&world, &id, "cancelled", true);
}

#[test]
fn the_advice_for_a_paused_project_is_resume() {
    let world = World::with_settings(&[plain("parser", &[], 1)], 0.0, APPROVED);
    world.run().exits(3);
    world.call("pause . --reason lunch").exits(0);
    let output = world.call("status .").exits(0).stdout.clone();
    assert!(output.contains("pending: pause by tester: lunch"), "{output}");
    without(&output, &["continues it"]);
    without(&world.call("why .").exits(0).stdout, &["continues it"]);
    world.run().exits(3);
    world.call("status .").says("paused by tester: lunch");
    let why = world.call("why .").exits(0).stdout.clone();
    assert!(why.contains("resumes it"), "{why}");
    without(&why, &["continues it"]);
    world.call("cancel .").exits(0);
    let output = world.call("status .").exits(0).stdout.clone();
    assert!(output.contains("pending: cancel by tester"), "{output}");
    without(&output, &["halt"]);
}

#[test]
fn a_project_has_no_log_of_its_own() {
    let plan = Plan { id: "parser", needs: &[], steps: 1, habit: Habit::Plain };
    let world = World::with_settings(&[plan], 0.0, ONCE);
    world.run().exits(0);
    world.call(&format!("logs {}", world.project_id())).exits(2).says("name a feature");
}
