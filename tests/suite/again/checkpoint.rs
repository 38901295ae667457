//! Checkpoints that a person asks for: of a feature that is worked on, and of one that has stopped.

use longhaul_tests::project::{Habit, Plan, plain};
use longhaul_tests::wait::until;
use serde_json::json;

use super::world::World;

#[test]
fn a_work_tree_is_kept_as_it_is_while_an_agent_works_in_it() {
    let world = World::new(&[plain("parser", &[], 3)], 0.0, "");
    world.project.hold("parser");
    let mut run = world.begin(&["run", &world.root]);
    world.project.until_at_work("parser");
    let id = world.id("parser", 1);
    let tree =
        world.longhaul.home().join("worktrees").join(id.split('/').next().unwrap()).join("parser");
    std::fs::write(tree.join("draft.txt"), "a draft\n").unwrap();
    world
        .call(&["checkpoint", &id, "--note", "half way", "--reason", "to be sure"])
        .exits(0)
        .says("checkpoint:1");
    world.call(&["checkpoint", &world.id("parser", 1)]).exits(0).says("checkpoint:2");
    world.project.let_go("parser");
    run.exits(0);
    let kept = format!("refs/longhaul/checkpoints/{id}/1");
    assert_eq!(world.project.git(&["show", &format!("{kept}:draft.txt")]), "a draft");
    let message = world.project.git(&["log", "-1", "--format=%B", &kept]);
    assert!(
        message.starts_with("half way") && message.contains("By: tester\nWhy: to be sure"),
        "{message}"
    );
    assert_eq!(
        world.project.read("parser.txt").lines().last(),
        Some("finished"),
        "the agent was not disturbed"
    );

    world.call(&["checkpoint", &id]).exits(2).says("has no work tree");
    let listed = world.call(&["checkpoints", "-o", "json", &world.root]).exits(0).json();
    let names: Vec<_> =
        listed["checkpoints"].as_array().unwrap().iter().map(|row| row["name"].clone()).collect();
    for name in ["session:1", "checkpoint:1", "checkpoint:2"] {
        assert!(names.contains(&json!(name)), "{names:?}");
    }
    world.call(&["fork", &id, "--from", "checkpoint:9"]).exits(2).says("longhaul checkpoints");
    world.call(&["fork", &id, "--from", "checkpoint:1"]).exits(0);
    assert_eq!(std::fs::read_to_string(tree.join("draft.txt")).unwrap(), "a draft\n");
    world.run().exits(0);
    assert_eq!(
        world.sessions(&world.id("parser", 2)),
        1,
        "it was taken before the session had ended"
    );
    assert_eq!(world.project.read("draft.txt"), "a draft\n");
    world.histories();
}

#[test]
fn a_blocked_feature_is_kept_and_gone_on_with() {
    let obeys = Plan { id: "parser", needs: &[], steps: 1, habit: Habit::Obeys };
    let world = World::new(&[obeys], 0.0, "[limits]\nfailed_gates = 1\n");
    world.run().exits(1);
    let id = world.id("parser", 1);
    world.call(&["checkpoint", id.trim_end_matches("/1")]).exits(0).says("checkpoint:1");
    world.call(&["checkpoint", "nobody"]).exits(2).says("nobody");
    let more = "settings.limits.failed_gates=2";
    world
        .call(&["fork", &id, "--from", "checkpoint:1", "--note", "finish it", "--set", more])
        .exits(0);
    world.run().exits(0);
    until("it passes", || world.line("parser")["passes"] == true);
    assert_eq!(world.sessions(&world.id("parser", 2)), 1);
}

#[test]
fn what_each_step_can_be_taken_for_is_listed_and_holds() {
    let world = World::new(&[plain("parser", &[], 1), plain("table", &["parser"], 1)], 0.0, "");
    world.run().exits(0);
    let id = world.id("parser", 1);
    let rows =
        world.call(&["checkpoints", &id, "-o", "json"]).exits(0).json()["checkpoints"].clone();
    let landed = rows.as_array().unwrap().iter().find(|row| row["step"] == "landed").unwrap();
    assert_eq!((&landed["fork"], &landed["rollback"]), (&json!(false), &json!(true)), "{rows:#}");
    let position = landed["position"].to_string();
    let output = world.call(&["fork", &id, "--from", &position]).exits(2).clone();
    output.says(&format!("cannot be forked after position {position}: the last is "));
    output.says(" --to parser` goes back to where it landed");
    assert_eq!(world.histories().len(), 5, "nothing was begun");
    world.call(&["checkpoints", &id]).exits(0).says("rollback").says("fork");

    for row in rows.as_array().unwrap().iter().filter(|row| row["fork"] == true) {
        let (from, at) = (row["name"].as_str().unwrap(), &row["position"]);
        world.call(&["fork", &id, "--from", from]).exits(0).says(&format!("{id}@{at} "));
        world.run().exits(0);
    }
    world
        .call(&["rollback", &world.root, "--to", landed["commit"].as_str().unwrap(), "--yes"])
        .exits(0);
}
