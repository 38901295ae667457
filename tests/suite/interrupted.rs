//! Runs that end while their work lands: the target branch decides what is paid again.

use std::time::Duration;

use longhaul_tests::command::Running;
use longhaul_tests::project::plain;
use longhaul_tests::wait::until;
use serde_json::json;

use crate::world::World;

const PATIENCE: Duration = Duration::from_mins(1);

/// An agent whose work takes git some time to check out.
fn with_many_files() -> World {
    let world = World::new(&[plain("parser", &[], 1)], 0.0);
    let agent = world.project.read("agent.sh");
    let body = agent.strip_prefix("#!/bin/sh\n").unwrap();
    let many = "mkdir -p many; for n in $(seq 3000); do echo $n >many/$n; done";
    world.project.write("agent.sh", &format!("#!/bin/sh\n{many}\n{body}"));
    world.project.commit("An agent that writes many files");
    world
}

/// A run whose work begins to appear in the user's checkout.
fn that_lands(world: &World) -> Running {
    let run = world.begin();
    until("its files appear", || world.project.root().join("many").exists());
    run
}

/// The work has landed once, and one session was paid.
#[track_caller]
fn check_landed_once(world: &World, orders: &[&str]) {
    assert_eq!(world.project.marks().len(), 1, "{orders:?}: one session");
    let commits = world.project.git(&["log", "--format=%s", "main"]);
    let landings = commits.lines().filter(|subject| *subject == "Feature parser").count();
    assert_eq!(landings, 1, "{orders:?}: {commits}");
    assert_eq!(world.project.landed("main"), ["parser"]);
}

/// A killed run, orders at rest, and a run after them.
#[track_caller]
fn check_after_kill(orders: &[&str]) {
    let world = with_many_files();
    that_lands(&world).kill();
    for order in orders {
        let output = world.call(order);
        assert!([0, 1, 3].contains(&output.code()), "{order}: {}", output.stderr);
    }
    world.run().exits(0);
    check_landed_once(&world, orders);
}

#[test]
fn a_cancelled_project_does_not_pay_again_for_what_was_landing_when_it_was_killed() {
    check_after_kill(&["cancel ."]);
}

#[test]
fn a_terminated_project_does_not_pay_again_for_what_was_landing_when_it_was_killed() {
    check_after_kill(&["terminate ."]);
}

#[test]
fn a_cancelled_feature_does_not_pay_again_for_what_was_landing_when_it_was_killed() {
    check_after_kill(&["cancel parser", "run .", "resume parser"]);
}

#[test]
fn a_feature_that_is_terminated_while_it_lands_does_not_pay_again() {
    let world = with_many_files();
    let mut run = that_lands(&world);
    world.call("terminate parser");
    run.wait_for(PATIENCE).expect("it ends");
    world.call("resume parser");
    world.run().exits(0);
    check_landed_once(&world, &["terminate"]);
}

#[test]
fn a_check_that_was_committed_before_the_landing_runs_before_it() {
    let settings =
        "[project]\nparallel = 1\n[merge]\napproval = true\n[limits]\nfailed_gates = 1\n";
    for edit in ["list", "settings"] {
        let world = World::with_settings(&[plain("parser", &[], 1)], 0.0, settings);
        world.run().exits(3);
        if edit == "list" {
            let list = world.project.read("feature_list.json");
            let edited = list.replacen("\"checks\": [", "\"checks\": [\"test -f nothere\", ", 1);
            assert_ne!(list, edited, "{list}");
            world.project.write("feature_list.json", &edited);
        } else {
            let text = world.project.read("longhaul.toml");
            let gate = "\n[[gate]]\nname = \"new\"\nrun = \"test -f nothere\"\n";
            world.project.write("longhaul.toml", &(text + gate));
        }
        world.project.commit("Ask for more");
        world.call("approve parser").exits(0);
        world.run();
        assert_eq!(world.project.landed("main"), [""; 0], "{edit}");
    }
}

#[test]
fn a_resume_behind_an_order_that_ends_the_run_is_refused() {
    for order in ["cancel", "terminate"] {
        let world = World::with_untaken_session("parser");
        world.call(&format!("{order} parser")).exits(0);
        world.call("resume parser").exits(3).says(&format!("unread request to {order}"));
        world.run().exits(3);
        world.call("resume parser").exits(0);
        world.run().exits(0);
        assert_eq!(world.project.marks().len(), 1, "{order}: one session");
    }
}

#[test]
fn a_feature_of_a_terminated_project_is_orchestrated() {
    let world = World::new(&[plain("parser", &[], 1), plain("table", &[], 1)], 0.0);
    world.project.hold("parser");
    let mut run = world.begin();
    world.project.until_at_work("parser");
    world.call("terminate .").exits(0);
    run.wait_for(PATIENCE).expect("it ends");
    world.project.let_go("parser");
    world.call("agent orchestrate parser --dir .").exits(0);
    assert_eq!(world.project.landed("main"), ["parser"]);
}

#[test]
fn a_landed_feature_that_is_removed_before_a_terminate_and_restored_after_it_is_not_paid_again() {
    let world = World::new(&[plain("parser", &[], 1), plain("table", &[], 1)], 0.0);
    world.project.hold("table");
    let mut run = world.begin();
    until("it has landed", || world.project.landed("main") == ["parser"]);
    let list = world.project.read("feature_list.json");
    let mut fewer: serde_json::Value = serde_json::from_str(&list).unwrap();
    let features = fewer["features"].as_array_mut().unwrap();
    let removed = features.iter().position(|feature| feature["id"] == "parser").unwrap();
    let mut restored = features.remove(removed);
    world.project.write("feature_list.json", &fewer.to_string());
    until("it is gone", || !world.call("status .").stdout.contains("parser"));
    world.call("terminate .").exits(0);
    run.wait_for(PATIENCE).expect("it ends");
    world.project.let_go("table");
    for claim in ["passes", "status", "last_tested"] {
        restored.as_object_mut().unwrap().remove(claim);
    }
    fewer["features"].as_array_mut().unwrap().push(restored);
    world.project.write("feature_list.json", &fewer.to_string());
    world.run();
    let paid = world
        .project
        .marks()
        .into_iter()
        .filter(|mark| mark.session.0.contains("/parser/"))
        .count();
    assert_eq!(paid, 1, "{:?}", world.project.marks());
}

#[test]
fn an_edit_before_the_last_session_ends_is_taken_up_before_the_run_does() {
    let settings = "[limits]\nfailed_gates = 1\n";
    for edit in ["add", "check"] {
        let plans = [plain("parser", &[], 1), plain("table", &[], 1)];
        let world = World::with_settings(&plans, 0.0, settings);
        world.project.hold("table");
        let mut run = world.begin();
        until("one has landed", || world.project.landed("main") == ["parser"]);
        world.project.until_at_work("table");
        let text = world.project.read("feature_list.json");
        let mut list: serde_json::Value = serde_json::from_str(&text).unwrap();
        let features = list["features"].as_array_mut().unwrap();
        if edit == "add" {
            let more = json!({ "id": "lexer", "name": "Lexer", "checks": ["false"] });
            features.push(more);
        } else {
            let parser = features.iter_mut().find(|feature| feature["id"] == "parser").unwrap();
            parser["checks"] = json!(["false"]);
        }
        world.project.write("feature_list.json", &list.to_string());
        world.project.let_go("table");
        run.exits(1);
    }
}
