//! The commands that prove and carry, as a person or a script uses them: on a log at rest, on one
//! in use, and without any.

mod advice;
mod doctor;
mod fuzz;
mod hurt;
mod landed;
mod pages;
mod pruned;
mod replay;
mod world;

use longhaul_tests::project::plain;

use world::{World, last_line};

#[test]
fn a_log_is_carried_over_and_is_the_same_to_the_byte() {
    let world = World::finished();
    world.longhaul.call(&["pause", &world.root]).exits(0);
    let file = world.exported(&world.longhaul, "one.jsonl");
    assert!(file.contains("\"Pause\":{"), "the unread message is in it");
    let other = world.elsewhere("other");
    let (one, dry) = (world.text("one.jsonl"), ["import", "--dry-run", &world.text("one.jsonl")]);
    other.call(&dry).exits(0).says("would be imported").says("5 runs");
    other.call(&["export", "--all"]).exits(2).says("nothing has run yet");
    other.call(&["import", &one]).exits(0).says("5 runs imported, 0 skipped");
    assert!(
        world.exported(&other, "two.jsonl") == file,
        "what was carried over is carried on the same"
    );
    other.call(&["import", &one]).exits(0).says("skipped: the log has it already, exactly so");
    other.call(&["check"]).exits(0).says("no damage found");
    other.call(&["replay", "--all"]).exits(0).says("5 runs: 5 same, 0 diverged");

    // Of the parts of a log, the same log.
    let third = world.elsewhere("third");
    let runs = file.lines().filter_map(|line| line.strip_prefix("{\"run\":\"")?.split('"').next());
    for (number, run) in runs.enumerate() {
        let part = world.text(&format!("part-{number}.jsonl.zst"));
        world.longhaul.call(&["export", run, "-O", &part]).exits(0).says("wrote 1 run");
        third.call(&["import", &part]).exits(0);
    }
    assert!(world.exported(&third, "three.jsonl") == file);
    world.longhaul.call(&["export", "--project", &world.id]).exits(0).says(last_line_of(&file));
    world.longhaul.call(&["export", "nobody/1"]).exits(2).says("nobody/1");
}

fn last_line_of(file: &str) -> &str {
    file.lines().last().unwrap_or_default()
}

#[test]
fn a_run_that_exists_otherwise_is_refused_and_nothing_else_is_taken_in() {
    let world = World::finished();
    let file = world.exported(&world.longhaul, "one.jsonl");
    world.longhaul.call(&["pause", &world.root]).exits(0);
    let other = world.elsewhere("other");
    let project = world.text("project.jsonl");
    world.longhaul.call(&["export", &world.id, "-O", &project]).exits(0);
    other.call(&["import", &project]).exits(0);
    let output = other.call(&["import", &world.text("one.jsonl"), "-o", "json"]);
    let report = output.exits(1).json();
    assert_eq!(report["imported"], false, "{report:#}");
    assert_eq!(report["new"].as_array().unwrap().len(), 4, "{report:#}");
    assert!(report["differ"][0]["how"].as_str().unwrap().contains("messages"), "{report:#}");
    other.call(&["replay", "--all"]).exits(0).says("1 run: 1 same");

    std::fs::write(world.path("cut.jsonl"), &file[..file.len() / 2]).unwrap();
    let fourth = world.elsewhere("fourth");
    fourth.call(&["import", &world.text("cut.jsonl")]).exits(4).says("nothing was imported");
    fourth.call(&["replay", "--all"]).exits(0).says("0 runs");
    fourth.call(&["import", &world.text("no-such-file")]).exits(2);
}

#[test]
fn a_log_in_use_is_read_backed_up_and_filled() {
    let mut world = World::new(&[plain("parser", &[], 1), plain("table", &["parser"], 1)], 0.0);
    world.project.hold("parser");
    let mut run = world.at_work("parser");
    let backup = world.text("all.backup.zst");
    let output = world.longhaul.call(&["backup", "-O", &backup]);
    assert_eq!(output.exits(0).says("wrote 3 runs").stdout.trim(), backup);
    world.longhaul.call(&["replay", "--all"]).exits(0).says("3 runs: 3 same");
    world.longhaul.call(&["replay", &backup]).exits(0).says("3 runs: 3 same");
    world.longhaul.call(&["check"]).exits(0).says("no damage found");
    world.longhaul.call(&["check", "--repair"]).exits(0).says("no damage found");
    let other = World::finished();
    let file = other.text("other.jsonl");
    other.longhaul.call(&["export", "--project", &other.id, "-O", &file]).exits(0);
    world.longhaul.call(&["import", &file]).exits(0).says("5 runs imported");
    world.longhaul.call(&["import", "-"]).exits(4).says("it is empty");
    world
        .longhaul
        .call(&["prune", "--older-than", "0s", "--yes", "--project", &other.id])
        .exits(0)
        .says("4 runs pruned");
    world.longhaul.call(&["prune", "--older-than", "0s", "--yes"]).exits(0).says("0 runs pruned");
    world.project.let_go("parser");
    run.exits(0);

    let restored = world.elsewhere("restored");
    restored.call(&["restore", &backup]).exits(0).says("restored 3 runs");
    restored.call(&["restore", &backup]).exits(2).says("is not empty");
    restored.call(&["check"]).exits(0).says("3 runs").says("no damage found");
    restored.call(&["replay", "--all"]).exits(0).says("3 runs: 3 same");
    world.longhaul.call(&["check"]).exits(0).says("no damage found");
    let names: Vec<_> = std::fs::read_dir(world.path("."))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert!(names.iter().all(|name| !name.to_string_lossy().contains("restoring")), "{names:?}");
}

#[test]
fn histories_are_let_go_of_and_their_runs_stay_known() {
    let world = World::finished();
    let run = format!("{}/parser/1", world.id);
    let logs = world.longhaul.home().join("logs").join(run.replace('/', "~"));
    assert!(logs.is_dir(), "{}", logs.display());
    world.longhaul.call(&["prune", "--older-than", "30d"]).exits(0).says("0 runs pruned");
    world
        .longhaul
        .call(&["prune", "--older-than", "0s", "--status", "failed,blocked"])
        .exits(0)
        .says("0 runs pruned");
    world
        .longhaul
        .call(&["prune", "--older-than", "0s", "--status", "passed", "--dry-run"])
        .exits(0)
        .says("4 runs would be pruned")
        .says(&run);
    world.longhaul.call(&["replay", &run]).exits(0).says("1 same");
    let list = world.project.read("feature_list.json");
    world
        .longhaul
        .call(&["prune", "--older-than", "0s", "--yes"])
        .exits(0)
        .says("4 runs pruned")
        .says("events gone");
    assert!(
        !logs.exists()
            && !world.longhaul.home().join("sessions").join(run.replace('/', "~")).exists()
    );
    assert_eq!(
        last_line(&world.longhaul.call(&["replay", "--all"])),
        "5 runs: 1 same, 0 diverged, 4 pruned"
    );
    world.longhaul.call(&["check"]).exits(0).says("no damage found");
    world.longhaul.call(&["prune", "--older-than", "0s", "--yes"]).exits(0).says("0 runs pruned");
    world.longhaul.call(&["run", &world.root]).exits(0).says("2 of 2 features pass");
    assert_eq!(world.project.marks().len(), 2, "nothing was done again");
    assert_eq!(world.project.read("feature_list.json"), list, "what is known stays in the list");

    let file = world.exported(&world.longhaul, "pruned.jsonl");
    assert!(file.contains("\"pruned\":{\"workflow\":\"feature\""));
    let other = world.elsewhere("other");
    other.call(&["import", &world.text("pruned.jsonl")]).exits(0);
    assert!(world.exported(&other, "again.jsonl") == file);
    world.longhaul.call(&["prune", "--older-than", "soon"]).exits(2).says("30d");
}

#[test]
fn two_commands_at_once_wait_for_each_other() {
    let world = World::finished();
    let file = world.text("one.jsonl");
    world.longhaul.call(&["export", "--all", "-O", &file]).exits(0);
    let other = world.elsewhere("other");
    let at_once: Vec<_> = (0..4)
        .map(|number| other.begin(&["import", &file], &world.path(&format!("output-{number}"))))
        .collect();
    for mut import in at_once {
        import.exits(0);
    }
    other.call(&["check"]).exits(0).says("5 runs").says("no damage found");
    assert!(world.exported(&other, "two.jsonl") == std::fs::read_to_string(&file).unwrap());
}

#[test]
fn a_backup_from_the_middle_goes_on_where_another_log_has_closed_the_work_tree() {
    let mut world = World::new(&[plain("parser", &[], 6), plain("table", &["parser"], 2)], 0.1);
    let mut run = world.at_work("parser");
    let mut backups = Vec::new();
    while world.project.landed("main").len() < 2 {
        let backup = world.text(&format!("{}.backup.zst", backups.len()));
        world.longhaul.call(&["backup", "-O", &backup]).exits(0);
        backups.push(backup);
        std::thread::sleep(std::time::Duration::from_millis(150));
    }
    run.exits(0);
    let content = world.project.content("main");
    for (number, backup) in backups.iter().enumerate() {
        let restored = world.elsewhere(&format!("restored-{number}"));
        restored.call(&["restore", backup]).exits(0);
        restored.call(&["run", "--take-over", &world.root]).exits(0).says("2 of 2 features pass");
        assert_eq!(world.project.content("main"), content);
        assert_eq!(world.project.landed("main"), ["table", "parser"], "nothing lands twice");
        restored.call(&["check"]).exits(0).says("no damage found");
        restored.call(&["replay", "--all"]).exits(0).says("0 diverged");
    }
}
