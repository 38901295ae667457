//! Advice: each command that is printed can be executed as it is, from any directory.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use longhaul_tests::project::{Habit, Plan, plain};

use crate::world::World;

const NEVER: Plan = Plan { id: "parser", needs: &[], steps: 1, habit: Habit::Never };
const SETTINGS: &str = "[project]\nparallel = 1\n[limits]\nfailed_gates = 1\n";

/// The words that stand for what a person writes.
const PLACEHOLDERS: [(&str, &str); 4] =
    [("TEXT", "'a text'"), ("ID", "more"), ("NAME", "'More'"), ("COMMAND", "true")];

/// The advised commands in a text.
fn advised(text: &str) -> BTreeSet<String> {
    let parts = text.split('`').skip(1).step_by(2);
    parts.filter(|part| part.starts_with("longhaul ")).map(str::to_owned).collect()
}

/// A copy of all that belongs to a world, which can be put back.
struct Kept<'a> {
    world: &'a World,
    copy: tempfile::TempDir,
}

impl<'a> Kept<'a> {
    fn of(world: &'a World) -> Self {
        let kept = Self { world, copy: tempfile::tempdir().unwrap() };
        copy(&world.project.place(), &kept.copy.path().join("kept"));
        kept
    }

    fn put_back(&self) {
        let place = self.world.project.place();
        for entry in std::fs::read_dir(&place).unwrap().flatten() {
            let path = entry.path();
            let removed = if path.is_dir() {
                std::fs::remove_dir_all(&path)
            } else {
                std::fs::remove_file(&path)
            };
            removed.unwrap();
        }
        copy(&self.copy.path().join("kept/."), &place);
    }
}

fn copy(from: &Path, to: &Path) {
    let status = Command::new("cp").args(["-a", "--"]).arg(from).arg(to).status().unwrap();
    assert!(status.success(), "{} is copied to {}", from.display(), to.display());
}

/// Executes each command that these commands advise, each on the same state; returns the advice.
#[track_caller]
fn check(world: &World, commands: &[&str], expected: &[&str]) {
    let kept = Kept::of(world);
    let mut all = BTreeSet::new();
    for command in commands {
        let output = world.call(command);
        all.extend(advised(&output.stdout));
        all.extend(advised(&output.stderr));
        kept.put_back();
    }
    for expected in expected {
        let expected = expected.replace("<project>", &world.project_id());
        assert!(all.iter().any(|advice| advice.starts_with(&expected)), "{expected}: {all:#?}");
    }
    for advice in &all {
        let line = PLACEHOLDERS.iter().fold(advice.clone(), |line, (word, value)| {
            line.replace(&format!(" {word}"), &format!(" {value}"))
        });
        let output = world.longhaul.shell(&format!("cd / && {line}"));
        assert!(
            matches!(output.code(), 0 | 1 | 3),
            "{advice}: exit {}\n{}\n{}",
            output.code(),
            output.stdout,
            output.stderr
        );
        kept.put_back();
    }
}

#[test]
fn of_blocked_and_waiting_features() {
    let plans = [NEVER, plain("table", &["parser"], 1), plain("shell", &[], 1)];
    let world = World::with_settings(&plans, 0.0, SETTINGS);
    world.run().exits(1);
    let commands = [
        "why parser",
        "why table",
        "why <project>",
        "status .",
        "status --all",
        "list",
        "resume parser",
        "resume shell",
        "resume table",
        "cancel .",
        "feature unblock parser",
        "feature show nothing",
        "describe table",
        "fork parser --from 9999",
        "terminate .",
    ];
    let expected = [
        "longhaul resume <project>/parser/1",
        "longhaul checkpoints <project>/parser/1",
        "longhaul why <project>/parser",
        "longhaul run /",
        "longhaul restart <project>/shell/1",
        "longhaul feature list /",
    ];
    check(&world, &commands, &expected);
}

#[test]
fn of_cancelled_work() {
    let world = World::with_settings(&[plain("parser", &[], 2)], 0.0, SETTINGS);
    world.project.hold("parser");
    let mut run = world.begin();
    world.project.until_at_work("parser");
    world.call("cancel .").exits(0);
    run.exits(3);
    world.project.let_go("parser");
    let commands =
        ["why <project>", "why parser", "why <project>/parser/1", "status .", "cancel ."];
    check(&world, &commands, &["longhaul run /", "longhaul resume <project>"]);
}

#[test]
fn of_work_that_waits_for_a_person() {
    let world = World::with_settings(
        &[plain("parser", &[], 1)],
        0.0,
        "[merge]\napproval = true\n[limits]\nfailed_gates = 1\n",
    );
    world.run().exits(3);
    let commands = ["why parser", "status .", "status --all", "describe parser", "list"];
    let expected =
        ["longhaul approve <project>/parser/1", "longhaul deny <project>/parser/1 --why TEXT"];
    check(&world, &commands, &expected);
    world.call("pause .").exits(0);
    let commands = ["why parser", "why <project>", "status .", "pause .", "resume ."];
    check(&world, &commands, &["longhaul run /"]);
}

#[test]
fn of_a_broken_set_up_and_an_empty_list() {
    let world = World::with_settings(&[plain("parser", &[], 1)], 0.0, SETTINGS);
    world.project.write("init.sh", "#!/bin/sh\nexit 3\n");
    world.project.commit("Break the set-up");
    world.run().exits(1);
    check(&world, &["why parser"], &["longhaul resume <project>/parser/1"]);
    world.project.write("feature_list.json", "{\"features\": []}\n");
    check(&world, &["run ."], &["longhaul feature add ID NAME --check COMMAND --dir /"]);
}
