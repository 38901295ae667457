//! `agent run`, `agent orchestrate`, `agent checkpoint` and `agent sessions`.

use longhaul_tests::project::{Habit, Plan, plain};
use serde_json::json;

use crate::world::World;

/// `page` needs `parser`; nothing needs `table`.
const PLANS: [Plan; 3] =
    [plain("table", &[], 1), plain("parser", &[], 1), plain("page", &["parser"], 1)];

/// The states of the features.
fn states(world: &World) -> Vec<String> {
    let features = world.json("status .")["features"].as_array().unwrap().clone();
    let state = |id: &str| {
        let line = features.iter().find(|line| line["id"] == id).unwrap();
        line["status"].as_str().unwrap().to_owned()
    };
    ["table", "parser", "page"].map(state).to_vec()
}

#[test]
fn one_feature_and_its_dependencies_are_worked_on() {
    let world = World::new(&PLANS, 0.0);
    world.call("agent run . --feature page").exits(0);
    assert_eq!(states(&world), ["pending", "passed", "passed"]);
    assert_eq!(world.project.landed("main"), ["page", "parser"]);
    world.call("agent orchestrate page --dir .").exits(0);
    assert_eq!(states(&world), ["pending", "passed", "passed"]);
    world
        .call("agent orchestrate nothing --dir .")
        .exits(2)
        .says("the feature nothing is not in the list");
    world.run().exits(0).says("3 of 3 features pass");
    world.call("replay --all").exits(0).says("0 diverged");
}

#[test]
fn a_blocked_feature_continues_and_another_stays_as_it_is() {
    let never = |id| Plan { id, needs: &[], steps: 1, habit: Habit::Never };
    let world = World::new(&[never("table"), never("parser")], 0.0);
    world.call("agent orchestrate parser --dir .").exits(1);
    world.call("agent checkpoint parser --dir .").exits(0).says("checkpoint:1");
    let sessions = || world.json("session list parser")["sessions"].as_array().unwrap().len();
    let first = sessions();
    world.call("agent run . --feature parser").exits(1);
    assert_eq!(sessions(), first, "a blocked feature stays blocked without --resume");
    world.call("agent run . --feature parser --resume").exits(1);
    assert!(sessions() > first, "it continues with --resume");
    assert_eq!(world.json("status .")["features"][0]["status"], "pending");
}

#[test]
fn a_session_is_continued_in_a_new_run() {
    let world = World::new(&[plain("parser", &[], 1)], 0.0);
    world.run().exits(0);
    let session =
        world.call("agent sessions parser -o ids --dir .").exits(0).stdout.trim().to_owned();
    assert_eq!(session, format!("{}/parser/1/1", world.project_id()));
    world
        .call(&format!("agent run . --session {session}"))
        .exits(0)
        .says("parser/2 continues from");
    assert_eq!(states_of(&world), json!("passed"));
    world.transcript(
        "run/agent",
        &[
            "agent sessions .",
            "agent sessions . --prune --yes",
            "agent sessions . --prune --older-than 1w --status passed --dry-run",
            "agent sessions . --older-than 1w",
            "agent sessions . --prune --older-than soon",
            "agent sessions . --prune -o ids",
            "agent run . --session <project>/parser/1/9",
            "agent run . --session <project>/parser/1/1 --feature parser",
            "agent orchestrate nothing --dir .",
        ],
    );
    world.narrow("agent sessions .").exits(0);
}

fn states_of(world: &World) -> serde_json::Value {
    world.json("status .")["features"][0]["status"].clone()
}
