//! Logs that lost their end: what the repository shows as landed is checked on the target, and not
//! paid for again.

use std::fs;

use longhaul_tests::project::{Plan, plain};

use super::hurt::copy;
use super::world::World;

const PLANS: [Plan; 3] =
    [plain("parser", &[], 2), plain("table", &["parser"], 2), plain("manual", &[], 2)];

/// Puts a copy of the data directory in its place.
fn put_back(world: &World, kept: &str) {
    fs::remove_dir_all(world.longhaul.home()).unwrap();
    copy(&world.path(kept), world.longhaul.home());
}

/// The features that landed, in the order of their names.
fn landed(world: &World) -> Vec<String> {
    let mut landed = world.project.landed("main");
    landed.sort_unstable();
    landed
}

#[test]
fn no_feature_is_paid_for_again_after_the_end_of_the_log_is_lost() {
    let mut world = World::new(&PLANS, 0.0);
    for feature in ["parser", "manual"] {
        world.project.hold(feature);
    }
    let mut run = world.at_work("parser");
    world.project.until_at_work("manual");
    copy(world.longhaul.home(), &world.path("held"));
    for feature in ["parser", "manual"] {
        world.project.let_go(feature);
    }
    run.exits(0);
    let (sessions, tip) = (world.project.marks().len(), world.project.git(&["rev-parse", "main"]));
    assert_eq!(sessions, 3);

    // Two features are in their first session in this log, and the third was never begun.
    put_back(&world, "held");
    world.longhaul.call(&["check", "--repair"]).exits(0);
    world.longhaul.call(&["run", &world.root]).exits(0).says("3 of 3 features pass");
    assert_eq!(world.project.marks().len(), sessions, "no session is paid again");
    assert_eq!(landed(&world), ["manual", "parser", "table"]);
    assert_eq!(world.project.git(&["rev-parse", "main"]), tip, "nothing lands again");
    world.longhaul.call(&["replay", "--all"]).exits(0).says("0 diverged");
    world.longhaul.call(&["check"]).exits(0).says("no damage found");
}

#[test]
fn a_log_that_was_cut_anywhere_is_repaired_and_finishes_its_project() {
    let world = World::new(&PLANS, 0.0);
    world.longhaul.call(&["run", &world.root]).exits(0);
    let (sessions, tip) = (world.project.marks().len(), world.project.git(&["rev-parse", "main"]));
    copy(world.longhaul.home(), &world.path("whole"));
    let whole = fs::read(world.longhaul.home().join("log/db")).unwrap();
    let used = whole.iter().rposition(|byte| *byte != 0).unwrap_or(0);
    for part in 1..10 {
        put_back(&world, "whole");
        fs::write(world.longhaul.home().join("log/db"), &whole[..used * part / 10]).unwrap();
        world.longhaul.call(&["check", "--repair"]).exits(0);
        world.longhaul.call(&["run", &world.root]).exits(0).says("3 of 3 features pass");
        assert_eq!(
            world.project.marks().len(),
            sessions,
            "cut at {part} of 10: a session is paid again"
        );
        assert_eq!(landed(&world), ["manual", "parser", "table"], "cut at {part} of 10");
        assert_eq!(
            world.project.git(&["rev-parse", "main"]),
            tip,
            "cut at {part} of 10: the target moved"
        );
        world.longhaul.call(&["replay", "--all"]).exits(0).says("0 diverged");
        world.longhaul.call(&["check"]).exits(0).says("no damage found");
    }
}

/// A world whose log ends in the first session of a feature that has landed.
fn cut_in_a_session() -> World {
    let mut world = World::new(&[plain("parser", &[], 1)], 0.0);
    world.project.hold("parser");
    let mut run = world.at_work("parser");
    copy(world.longhaul.home(), &world.path("held"));
    world.project.let_go("parser");
    run.exits(0);
    put_back(&world, "held");
    world
}

#[test]
fn a_session_that_the_log_ends_in_is_not_run_again_if_its_work_landed() {
    let world = cut_in_a_session();
    let tip = world.project.git(&["rev-parse", "main"]);
    world.longhaul.call(&["run", &world.root]).exits(0).says("1 of 1 features pass");
    assert_eq!(world.project.marks().len(), 1);
    assert_eq!(world.project.git(&["rev-parse", "main"]), tip);
    let run = format!("{}/parser/1", world.id);
    world.longhaul.call(&["history", &run]).exits(0).says("had landed as");
    world.longhaul.call(&["logs", &run]).exits(0);
    world.longhaul.call(&["describe", &run]).exits(0);
}

#[test]
fn a_landed_feature_whose_gates_fail_on_the_target_is_done_again() {
    let world = cut_in_a_session();
    world.project.git(&["revert", "--no-edit", "HEAD"]);
    world.longhaul.call(&["run", &world.root]).exits(0).says("1 of 1 features pass");
    assert_eq!(world.project.marks().len(), 2, "the gates decide, and they failed");
    assert!(world.project.read("parser.txt").contains("finished"));
    assert_eq!(landed(&world), ["parser", "parser"]);
}
