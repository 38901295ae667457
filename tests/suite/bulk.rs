//! Verbs over several runs, their aliases and their confirmations.

use longhaul_tests::project::{Habit, Plan, plain};
use longhaul_tests::wait::until;

use crate::world::World;

const NEVER: Plan = Plan { id: "manual", needs: &[], steps: 1, habit: Habit::Never };

/// `parser` and `table` pass, `manual` is blocked.
fn finished() -> World {
    let world = World::new(&[plain("parser", &[], 1), plain("table", &["parser"], 1), NEVER], 0.0);
    world.run().exits(1);
    world
}

#[test]
fn directories_and_aliases_are_accepted() {
    let world = finished();
    for verb in ["why", "describe", "history", "tree", "checkpoints"] {
        let dir = world.call(&format!("{verb} .")).exits(0).stdout.clone();
        // Without a name, the project of the directory.
        assert_eq!(
            world.longhaul.call(&[verb, "--dir", &world.root]).exits(0).stdout,
            dir,
            "{verb}"
        );
        assert!(!dir.is_empty());
    }
    world.call("why .").exits(0).says("manual");
    world.call("describe .").exits(0).says("Workflow:   project");
    world.call("reset manual --dir . --from start --reason x --identity ann --dry-run").exits(0);
    world.call("rerun manual --dir . --dry-run").exits(0).says("would continue");
    world.call("retry manual --dir . --dry-run").exits(0);
    world.call("unpause manual --dir . --dry-run").exits(0);
    world.call("stop parser --dir . --dry-run").exits(2).says("is over");
    world.call("reject parser --dir . --reason no --dry-run").exits(2);
    world.longhaul.call(&["help"]).exits(0).says("Steer:");
    world.longhaul.call(&["help", "fork"]).exits(0).says("Examples:").says("before-failure");
    let unnamed = world.longhaul.clone().with("USER", "").with("LOGNAME", "");
    world.call_with(&unnamed, "resume manual").exits(0);
    let audit = world.json("describe .");
    assert_ne!(audit["audit"].to_string(), "[]");
    assert!(!audit.to_string().contains("\"by\":\"unknown\""), "{audit:#}");
}

#[test]
fn a_fork_starts_at_the_last_step_or_before_the_failure() {
    let world = finished();
    let rows = world.json("checkpoints manual");
    let steps = rows["checkpoints"].as_array().unwrap();
    let forks: Vec<_> = steps.iter().filter(|step| step["fork"] == true).collect();
    let last = world.json("fork manual --from last --dry-run");
    assert_eq!(last["position"], forks.last().unwrap()["position"], "{rows:#}");
    // Both sessions failed their gates: the work before the last session is the first one's.
    let before = world.json("fork manual --from before-failure --dry-run");
    let sessions: Vec<_> = forks.iter().filter(|step| step["session"].is_number()).collect();
    assert_eq!(before["position"], sessions[sessions.len() - 2]["position"], "{rows:#}");
    world.call("fork parser --from before-failure").exits(2).says("no failed check");
    assert_eq!(world.json("list --kind feature")["fitting"], 3, "a dry run starts nothing");

    let forked = world.json("fork manual --from last");
    let cost = &world.json("describe manual")["cost"];
    assert_eq!(world.json("describe manual")["run"], forked["run"]);
    assert_eq!(cost["sessions"], 0, "copied sessions were paid by their origin: {cost}");
    world.call("describe manual").exits(0).says("Fork of:");
    let text = world.call("describe manual").stdout.clone();
    assert!(!text.contains("copied="), "{text}");
    let history = world.call("history parser").stdout.clone();
    assert!(!history.contains("clock") && !history.contains("no message"), "{history}");
}

#[test]
fn bulk_forks_list_what_becomes_invalid() {
    let world = finished();
    let filter = "--filter status=passed";
    let dry = world.json(&format!("restart {filter} --dry-run"));
    assert_eq!(dry["dry_run"], true);
    let forks = dry["forks"].as_array().unwrap();
    assert_eq!(forks.len(), 2, "{dry:#}");
    let parser = forks.iter().find(|fork| fork["run"].as_str().unwrap().contains("parser"));
    assert_eq!(parser.unwrap()["invalidates"], serde_json::json!(["table"]));
    world.call(&format!("restart {filter}")).exits(2).says("--yes");
    world.call(&format!("fork {filter} --from start --limit 1 --yes")).exits(0);
    world.call("restart --filter status=cancelled --yes").exits(0).says("no run matches");
    world.call("pause --filter status=cancelled --yes").exits(0).says("no run matches");
    world.run().exits(1);
}

#[test]
fn each_verb_selects_the_runs_that_it_can_act_on() {
    let world = finished();
    let id = world.project_id();
    for verb in ["restart", "fork --from start"] {
        let dry = world.json(&format!("{verb} --filter feature=manual --dry-run"));
        assert_eq!(dry["forks"].as_array().map(Vec::len), Some(1), "{verb}: {dry:#}");
    }
    let dry = world.json(&format!("resume --filter project={id} --dry-run"));
    let runs: Vec<&str> =
        dry["runs"].as_array().unwrap().iter().filter_map(|run| run["run"].as_str()).collect();
    assert_eq!(runs.len(), 1, "{dry:#}");
    let dry = world.json("resume --filter feature=manual --dry-run");
    assert_eq!(dry["runs"][0]["target"], format!("{id}/manual/1"), "{dry:#}");
    world.call("resume --filter kind=session --yes").exits(0).says("no run matches");
    world.call("cancel --filter feature=manual --yes").exits(0).says("no run matches");

    // The sessions of a blocked feature are needed when it is tried again.
    let dry = world.json("prune --older-than 0s --status passed --dry-run");
    let pruned = dry["runs"].to_string();
    assert!(pruned.contains("/parser/1/1") && !pruned.contains("/manual/"), "{pruned}");
}

#[test]
fn rollback_and_prune_confirm() {
    let world = finished();
    let base = world.project.git(&["rev-list", "--max-parents=0", "main"]);
    let rollback = format!("rollback . --to {base}");
    let dry = world.json(&format!("{rollback} --dry-run"));
    let mut undone: Vec<_> =
        dry["undone"].as_array().unwrap().iter().map(ToString::to_string).collect();
    undone.sort_unstable();
    assert_eq!(undone, ["\"parser\"", "\"table\""]);
    world.call(&rollback).exits(2).says("parser").says("--yes");
    world.call("prune --older-than 0s").exits(2).says("7 runs would be pruned");
    assert_eq!(world.project.landed("main").len(), 2);
    world.call(&format!("{rollback} --yes")).exits(0);
    assert!(world.project.landed("main").is_empty());
}

#[test]
fn an_order_can_be_waited_for() {
    let world = World::new(&[plain("parser", &[], 1)], 0.0);
    world.project.hold("parser");
    let mut run = world.begin();
    world.project.until_at_work("parser");
    world.call("pause parser --wait --timeout 1s").exits(3).says("not paused yet");
    world.project.let_go("parser");
    world.call("pause parser --wait").exits(0);
    let state = world.json("describe parser")["status"].clone();
    assert_eq!(state, "paused");
    world.call("resume parser --wait --timeout 5m").exits(0);
    run.exits(0);
    world.call("signal . sync {\"id\":\"x\"} --wait").exits(3).says("no process runs this log");
}

#[test]
fn doctor_keeps_the_work_of_a_removed_feature() {
    let plans = [plain("parser", &[], 1), plain("table", &[], 1)];
    let world = World::new(&plans, 0.0);
    world.project.hold("parser");
    let mut run = world.begin();
    world.project.until_at_work("parser");
    run.terminate();
    run.exits(3);
    world.project.write_list(&plans[1..]);
    world.project.commit("Do without a parser");
    world.run().exits(0);
    let tree = world.project.home().join("worktrees").join(world.project_id()).join("parser");
    assert!(tree.exists());
    let doctor = world.call("doctor .").exits(0).stdout.clone();
    assert!(!doctor.contains("rm -r"), "{doctor}");
    world.project.let_go("parser");
    world.project.write_list(&plans);
    world.project.commit("Ask for a parser again");
    world.run().exits(0);
}

#[test]
fn doctor_keeps_what_can_be_resumed() {
    let world = World::new(&[plain("parser", &[], 1)], 0.0);
    world.project.hold("parser");
    let mut run = world.begin();
    world.project.until_at_work("parser");
    world.call("cancel . --wait").exits(0);
    run.exits(3);
    until("the tree is kept", || world.project.home().join("worktrees").exists());
    let doctor = world.call("doctor .").stdout.clone();
    assert!(!doctor.contains("rm -r"), "{doctor}");
}
