//! Pruning gives back space. Runs whose histories were let go of say so, to every verb that needs a
//! history.

use longhaul_tests::project::{Habit, Plan, plain};

use super::world::World;

#[test]
fn commands_that_need_a_pruned_history_name_the_reason() {
    let never = Plan { id: "parser", needs: &[], steps: 1, habit: Habit::Never };
    let mut world = World::new(&[never, plain("table", &[], 1)], 0.0);
    world.longhaul.call(&["run", &world.root]).exits(1);
    world.id = world.project.git(&["config", "longhaul.id"]);
    let run = format!("{}/parser/1", world.id);
    let output = world.longhaul.call(&["prune", "--older-than", "0s", "--yes"]);
    output.exits(0).says("8 runs pruned").says("the log itself took");
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
            let mut args: Vec<&str> =
                verb.iter().map(|word| if *word == "_" { name } else { word }).collect();
            args.extend(["--dir", &world.root]);
            let output = world.longhaul.call(&args);
            output.exits(2).says(&format!("run {run} was pruned on ")).says("its history is gone");
        }
    }
    world
        .longhaul
        .call(&["replay", "--all"])
        .exits(0)
        .says("skipped, nothing is left to replay")
        .says("8 pruned");
    world.longhaul.call(&["list"]).exits(0).says("blocked").says("passed");
    world.longhaul.call(&["describe", &run]).exits(0).says("only the last is kept");
    world.longhaul.call(&["why", &run]).exits(0).says("It was given up: the gates failed");
    world.longhaul.call(&["feature", "unblock", "parser", "--dir", &world.root]).exits(0);
    world.longhaul.call(&["run", &world.root]).exits(1);
    world
        .longhaul
        .call(&["history", "parser", "--dir", &world.root])
        .exits(0)
        .says("over: blocked");
}

#[test]
fn pruning_a_log_in_use_says_when_the_space_comes_back() {
    let fills = |id| Plan { id, needs: &[], steps: 3, habit: Habit::Repairs };
    let mut world = World::new(&[fills("parser"), fills("table"), plain("held", &[], 1)], 0.0);
    world.project.hold("held");
    let mut run = world.at_work("held");
    let passing = || world.longhaul.status(&world.project.root())["counts"]["passed"] == 2;
    longhaul_tests::wait::until("two features pass", passing);
    let file = world.longhaul.home().join("log/db");
    let inode = || std::os::unix::fs::MetadataExt::ino(&std::fs::metadata(&file).unwrap());
    let before = inode();
    let output = world
        .longhaul
        .call(&["prune", "--older-than", "0s", "--yes", "-o", "json"])
        .exits(0)
        .clone();
    assert_eq!(output.json()["shrinks_later"], true);
    output.says("the log itself gets smaller when it is opened next");
    world.project.let_go("held");
    run.exits(0);
    world.longhaul.call(&["list"]).exits(0);
    assert_ne!(inode(), before, "the log was rewritten");
    world.longhaul.call(&["check"]).exits(0).says("no damage found");
}
