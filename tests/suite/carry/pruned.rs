//! Runs whose histories were let go of say so, to every verb that needs a history.

use longhaul_tests::project::{Habit, Plan, plain};

use super::world::World;

#[test]
fn who_needs_a_history_is_told_that_it_was_pruned() {
    let never = Plan { id: "parser", needs: &[], steps: 1, habit: Habit::Never };
    let mut world = World::new(&[never, plain("table", &[], 1)], 0.0);
    world.longhaul.call(&["run", &world.root]).exits(1);
    world.id = world.project.git(&["config", "longhaul.id"]);
    let run = format!("{}/parser/1", world.id);
    world.longhaul.call(&["prune", "--older-than", "0s"]).exits(0).says("2 runs pruned");
    let verbs: [&[&str]; 9] = [
        &["fork", "_", "--from", "start"],
        &["fork", "_", "--from", "session:1"],
        &["restart", "_"],
        &["resume", "_"],
        &["checkpoint", "_"],
        &["checkpoints", "_"],
        &["history", "_"],
        &["logs", "_"],
        &["replay", "_"],
    ];
    for verb in verbs {
        for name in [run.as_str(), "parser"] {
            let mut args: Vec<&str> = verb.iter().map(|word| if *word == "_" { name } else { word }).collect();
            args.extend(["--dir", &world.root]);
            let said = world.longhaul.call(&args);
            said.exits(2).says(&format!("run {run} was pruned on ")).says("its history is not there any more");
        }
    }
    world.longhaul.call(&["replay", "--all"]).exits(0).says("skipped, nothing is left to replay").says("2 pruned");
    world.longhaul.call(&["list"]).exits(0).says("blocked").says("passed");
    world.longhaul.call(&["describe", &run]).exits(0).says("not there any more");
    world.longhaul.call(&["why", &run]).exits(0).says("It was given up: the gates failed");
    world.longhaul.call(&["feature", "unblock", "parser", "--dir", &world.root]).exits(0);
    world.longhaul.call(&["run", &world.root]).exits(1);
    world.longhaul.call(&["history", "parser", "--dir", &world.root]).exits(0).says("over: blocked");
}
