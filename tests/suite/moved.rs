//! A project that was moved goes on where it is now; a copy of one is told from it.

use std::process::Command;

use longhaul_tests::project::{Habit, Plan, plain};

use crate::world::World;

/// Where the project is moved to.
fn other(world: &World) -> String {
    world.project.place().join("moved").to_string_lossy().into_owned()
}

#[test]
fn a_moved_project_goes_on_with_what_was_in_flight() {
    let repairs = Plan { id: "parser", needs: &[], steps: 3, habit: Habit::Repairs };
    let world = World::new(&[repairs, plain("table", &["parser"], 2)], 0.0);
    world.project.hold("parser");
    let mut run = world.begin();
    world.project.until_at_work("parser");
    run.terminate();
    run.exits(3);
    world.project.let_go("parser");
    let there = other(&world);
    std::fs::rename(&world.root, &there).unwrap();
    let output = world.longhaul.call(&["doctor", &there]);
    output.exits(0).says(&format!("it was moved there from {}", world.root));
    world.longhaul.call(&["run", &there]).exits(0).says("2 of 2 features pass");
    let status = world.longhaul.status(there.as_ref());
    assert_eq!(status["root"], there, "{status:#}");
    assert!(!std::path::Path::new(&world.root).exists(), "nothing is written where it was");
    world
        .longhaul
        .call(&[
            "fork",
            &format!("{}/parser/1", status["project"].as_str().unwrap()),
            "--from",
            "start",
        ])
        .exits(0);
    world.longhaul.call(&["run", &there]).exits(0).says("2 of 2 features pass");
}

#[test]
fn what_is_at_its_gates_goes_on_after_a_move() {
    let world = World::with_settings(&[plain("parser", &[], 1)], 0.0, "[merge]\napproval = true\n");
    world.run().exits(3);
    let there = other(&world);
    std::fs::rename(&world.root, &there).unwrap();
    world.longhaul.call(&["approve", "parser", "--dir", &there]).exits(0);
    world.longhaul.call(&["run", &there]).exits(0);
}

#[test]
fn a_copy_is_distinguished_from_a_moved_project() {
    let world = World::new(&[plain("parser", &[], 1)], 0.0);
    world.run().exits(0);
    let there = other(&world);
    assert!(Command::new("cp").args(["-r", &world.root, &there]).status().unwrap().success());
    world
        .longhaul
        .call(&["run", &there])
        .exits(2)
        .says("it seems to be a copy")
        .says("--unset longhaul.id");
    world.longhaul.call(&["doctor", &there]).exits(1).says("it seems to be a copy");
    world.run().exits(0);
}
