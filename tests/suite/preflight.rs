//! The report on a project before a session is paid.

use longhaul_tests::project::plain;

use crate::world::World;

#[test]
fn a_changed_checkout_is_named_before_a_session() {
    let world = World::new(&[plain("parser", &[], 1)], 0.0);
    world.project.write("notes.txt", "one\n");
    world.project.commit("Notes");
    assert!(!world.call("doctor .").stdout.contains("uncommitted"));
    world.project.write("notes.txt", "two\n");
    world.call("doctor .").says("uncommitted changes in notes.txt");
    // The feature is blocked, so that nothing else is said about the checkout.
    let list = world.project.read("feature_list.json");
    let check = "sh acceptance/parser.sh";
    world.project.write("feature_list.json", &list.replace("grep -q finished parser.txt", check));
    world
        .run()
        .exits(1)
        .says("uncommitted changes in notes.txt")
        .says("commit them, or set them aside with `git stash push -u -- FILE`");
    assert_eq!(world.project.marks().len(), 0);
}

#[test]
fn submodules_and_large_files_that_no_set_up_fetches_are_named() {
    let world = World::new(&[plain("parser", &[], 1)], 0.0);
    world.project.write(".gitmodules", "[submodule \"lib\"]\n\tpath = lib\n\turl = ../lib\n");
    world.project.write(".gitattributes", "*.bin filter=lfs\n");
    world.project.write("big.bin", "version https://git-lfs.github.com/spec/v1\n");
    world.project.commit("Need more than git has here");
    let empty = "are empty where agents and checks work: lib";
    world.call("doctor .").says(empty).says("big.bin").says("git lfs pull");
    world
        .project
        .write("init.sh", "#!/bin/sh\ntest -d plan # git submodule update --init; git lfs pull\n");
    let output = world.call("doctor .");
    assert!(
        !output.stdout.contains("submodule") && !output.stdout.contains("big.bin"),
        "{}",
        output.stdout
    );
}

#[test]
fn settings_and_usage_errors_say_what_to_write() {
    let world = World::new(&[plain("parser", &[], 1)], 0.0);
    let settings = world.project.read("longhaul.toml");
    let command = settings.lines().find(|line| line.starts_with("command")).unwrap();
    let wrong = settings.replace(command, "command = \"agent1\"");
    world.project.write("longhaul.toml", &wrong);
    world.run().exits(2).says("write it as a list, such as [\"agent1\"]");
    let claude = settings.replace(command, "driver = \"claude\"");
    world.project.write("longhaul.toml", &claude);
    let longhaul = world.longhaul.clone().with("PATH", "/nowhere");
    let output = longhaul.call(&["doctor", &world.root]);
    assert!(!output.stdout.contains("correct `command`"), "{}", output.stdout);
    let usage = world.longhaul.call(&["fork"]);
    assert!(!usage.exits(2).stderr.contains("--data-dir"), "{}", usage.stderr);
    world.call("feature add parser Parser").exits(2).says("there is a feature `parser` already");
    world.call("feature import .").exits(2).says("name the file of the backlog");
}

#[test]
fn a_run_that_is_cut_does_not_say_that_it_waited_or_runs() {
    let world = World::new(&[plain("parser", &[], 1)], 0.0);
    world.project.write("agent.sh", "#!/bin/sh\nexit 3\n");
    world.project.commit("An agent that does not work");
    let output = world.call("run --once . -o json");
    let document = output.exits(3).json();
    assert!(!output.stderr.contains("after waiting"), "{}", output.stderr);
    let project = &document["projects"][0];
    assert_eq!(project["is_running"], false, "{document:#}");
    assert_ne!(project["status"], "running", "{document:#}");
}
