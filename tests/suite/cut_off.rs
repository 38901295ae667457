//! What a person sees of work that was cut off, is blocked, or is over.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use longhaul_tests::project::{Habit, Plan, plain};
use longhaul_tests::wait::until;

use crate::world::World;

fn line(world: &World, feature: &str) -> serde_json::Value {
    let lines = world.json("status .")["features"].as_array().cloned().unwrap_or_default();
    lines.into_iter().find(|line| line["id"] == feature).unwrap_or_default()
}

#[test]
fn sessions_that_were_cut_off_are_counted() {
    let world = World::new(&[plain("parser", &[], 3)], 0.0);
    world.project.hold("parser");
    let mut run = world.begin();
    world.project.until_at_work("parser");
    world.call("cancel .").exits(0);
    run.exits(3);
    assert_eq!(line(&world, "parser")["sessions"], 1);
    let mut run = world.begin();
    until("it is tried again", || line(&world, "parser")["step"] == "session 1");
    assert_eq!(line(&world, "parser")["sessions"], 2);
    world.call("cancel parser").exits(0);
    run.exits(3);
    assert_eq!(
        (&line(&world, "parser")["sessions"], &line(&world, "parser")["status"]),
        (&2.into(), &"cancelled".into())
    );
}

#[test]
fn what_is_blocked_is_not_superfluous_and_what_passes_is_not_blocked() {
    let never = Plan { id: "parser", needs: &[], steps: 1, habit: Habit::Never };
    let world = World::new(&[never, plain("table", &[], 1)], 0.0);
    world.run().exits(1);
    let doctor = world.call("doctor .");
    assert!(!doctor.exits(0).stdout.contains("git worktree remove"), "{}", doctor.stdout);
    world.call("feature unblock table").exits(2).says("table is not blocked: it is passed");
    world.call("feature unblock parser").exits(0);

    let agent = world.project.root().join("agent.sh");
    fs::set_permissions(&agent, Permissions::from_mode(0o644)).unwrap();
    world.call("doctor .").exits(1).says("`./agent.sh` is no program");
    world.run().exits(2).says("`./agent.sh` is no program").says("chmod +x");
}

#[test]
fn what_passed_before_is_one_line() {
    let world = World::new(&[plain("parser", &[], 1), plain("table", &[], 1)], 0.0);
    world.run().exits(0);
    let again = world.run();
    again.exits(0).says("2 of 2 features passed already");
    assert!(!again.stderr.contains("parser"), "{}", again.stderr);
    world
        .longhaul
        .call(&["run", "-v", &world.root])
        .exits(0)
        .says("parser  passed")
        .says("table  passed");
}

#[test]
fn trying_to_import_leaves_nothing() {
    let world = World::new(&[plain("parser", &[], 1)], 0.0);
    world.run().exits(0);
    world.call("export --all -O <place>/all.jsonl").exits(0);
    let shown = world.call("import <place>/all.jsonl --dry-run --data-dir <place>/other");
    shown.exits(0).says("3 runs would be imported");
    assert!(!world.project.place().join("other").exists());
    world.call("export --all -O <place>/all.jsonl").exits(2).says("--force");
    world.call("export --all -O <place>/all.jsonl --force").exits(0);
}

#[test]
fn who_takes_back_is_in_the_log_and_checks_are_written_as_in_the_list() {
    let never = Plan { id: "parser", needs: &[], steps: 1, habit: Habit::Never };
    let world = World::new(&[never], 0.0);
    world.run().exits(1);
    let run = format!("{}/parser/1", world.project_id());
    let fork = |set: &str| {
        world
            .longhaul
            .call(&["fork", &run, "--from", "start", "--by", "ann", "--why", "x", "--set", set])
    };
    fork("feature.checks=[1]").exits(2).says("checks are a list of commands");
    fork("feature.checks=[\"true\"]").exits(2).says("the checks of the list");
    // The list decides, and the work passes by what it asks for now.
    let list = world.project.read("feature_list.json");
    world.project.write("feature_list.json", &list.replace("grep -q finished parser.txt", "true"));
    world.project.commit("Ask for less");
    fork("settings.limits.failed_gates=2").exits(0);
    world.run().exits(0).says("1 of 1 features pass");
    let history = world.longhaul.call(&["history", &world.project_id(), "--full"]);
    history.exits(0).says("ann");
    let to = world.project.git(&["rev-parse", "HEAD~1"]);
    let back = world.longhaul.call(&[
        "rollback",
        &world.root,
        "--to",
        &to,
        "--by",
        "bob",
        "--yes",
        "-o",
        "json",
    ]);
    assert_eq!(
        (&back.exits(0).json()["by"], &back.json()["undone"]),
        (&"bob".into(), &serde_json::json!(["parser"]))
    );
    world.longhaul.call(&["describe", &world.project_id()]).exits(0).says("bob");
}

#[test]
fn lines_of_progress_are_nothing_but_lines() {
    let world = World::new(&[plain("parser", &[], 1)], 0.0);
    let plan = world.project.place().join("plan.toml");
    fs::write(&plan, "batch = \"nightly\"\n[[project]]\ndir = \"p\"\n").unwrap();
    let plan = plan.to_string_lossy();
    let output = world.longhaul.call(&["batch", &plan, "--progress", "jsonl"]);
    output.exits(0).says("batch nightly: 1 project\n");
    let lines: Vec<serde_json::Value> =
        output.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let (last, before) = lines.split_last().unwrap();
    assert_eq!(last["schema"], "longhaul.batch/1");
    assert!(
        !before.is_empty() && before.iter().all(|line| line["schema"] == "longhaul.progress/1"),
        "{}",
        output.stdout
    );
    world.longhaul.call(&["batch", &plan]).exits(0).says("batch nightly: 1 project, 1 done");
}
