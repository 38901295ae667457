//! Failures of the machine: a full disk is waited out, with its name in every view, and costs no
//! feature anything.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use longhaul_tests::command::Running;
use longhaul_tests::project::plain;
use longhaul_tests::wait::until;
use serde_json::Value;

use crate::world::World;

/// A small disk in the place of a folder, with what was in it; gone when this is dropped.
struct SmallDisk {
    place: PathBuf,
}

impl SmallDisk {
    /// `None`: only the superuser may do that.
    fn at(place: &Path, size: &str) -> Option<Self> {
        let aside = place.with_extension("aside");
        fs::create_dir_all(place).unwrap();
        fs::rename(place, &aside).unwrap();
        fs::create_dir(place).unwrap();
        let option = format!("size={size},mode=700");
        let mounted =
            Command::new("mount").args(["-t", "tmpfs", "-o", &option, "tmpfs"]).arg(place).output();
        if !mounted.is_ok_and(|mounted| mounted.status.success()) {
            eprintln!("skipped: a file system can be mounted by the superuser only");
            return None;
        }
        let disk = Self { place: place.to_owned() };
        let copied = Command::new("cp").arg("-a").arg(aside.join(".")).arg(place).status().unwrap();
        assert!(copied.success(), "the disk has room for what was there");
        Some(disk)
    }

    fn filler(&self) -> PathBuf {
        let git = self.place.join(".git");
        if git.is_dir() { git.join("filler") } else { self.place.join("filler") }
    }

    fn fill(&self) {
        let mut file = fs::File::create(self.filler()).unwrap();
        for size in [1 << 16, 1 << 12, 1] {
            while file.write_all(&vec![b'x'; size]).is_ok() {}
        }
    }

    fn free(&self) {
        fs::remove_file(self.filler()).unwrap();
    }

    /// As it is named to people.
    fn reason(&self) -> String {
        format!("disk full on {}", self.place.display())
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.place).status();
    }
}

/// A project on a small disk that has run once, and has one more feature now.
fn on_small_disk() -> Option<(World, SmallDisk)> {
    let world = World::new(&[plain("tokens", &[], 1)], 0.0);
    let disk = SmallDisk::at(&world.project.root(), "16m")?;
    world.run().exits(0);
    world.project.write_list(&[plain("tokens", &[], 1), plain("parser", &[], 1)]);
    world.project.write("plan/parser", "steps=1 pause=0 habit=plain\n");
    world.project.commit("Ask for a parser");
    Some((world, disk))
}

/// The feature in the status; null while the project has not read its list.
fn parser(world: &World) -> Value {
    let status = world.longhaul.status(&world.project.root());
    let features = status["features"].as_array().unwrap();
    features.iter().find(|feature| feature["id"] == "parser").cloned().unwrap_or_default()
}

#[test]
fn a_full_disk_of_the_repository_is_waited_out_by_a_run_that_goes_on() {
    let Some((world, disk)) = on_small_disk() else { return };
    disk.fill();
    let mut run = world.begin();
    until("it waits", || {
        parser(&world)["machine"].as_str().is_some_and(|cause| cause.starts_with(&disk.reason()))
    });
    let waiting = format!("waiting: {}", disk.reason());
    assert_ne!(parser(&world)["status"], "blocked");
    assert!(parser(&world)["reason"].as_str().unwrap().starts_with(&waiting));
    for command in ["status .", "list --feature parser", "why parser", "describe parser"] {
        let output = world.call(command);
        assert!(
            output.stdout.replace('\n', " ").contains("disk full on"),
            "{command}: {}",
            output.stdout
        );
    }
    world.call("list --status waiting").exits(0).says("parser");
    disk.free();
    run.exits(0);
    assert_eq!(world.project.landed("main"), ["parser", "tokens"]);
    assert_eq!(parser(&world)["sessions"], 1, "no session was paid for the disk");
    world.call("replay --all").exits(0);
}

#[test]
fn a_run_that_waits_for_nothing_but_the_machine_ends_with_4_and_the_next_one_goes_on() {
    let Some((world, disk)) = on_small_disk() else { return };
    disk.fill();
    let impatient = world.longhaul.clone().with("LONGHAUL_MACHINE_WAIT", "2");
    let output = impatient.call(&["run", &world.root]);
    output.exits(4).says(&format!("stopped after waiting 2 s for the machine: {}", disk.reason()));
    assert_ne!(parser(&world)["status"], "blocked");
    assert_eq!(parser(&world)["sessions"], 0);
    disk.free();
    world.run().exits(0).says("2 of 2 features pass");
}

#[test]
fn a_full_disk_of_the_log_ends_the_run_with_4_and_loses_nothing() {
    let world = World::new(&[plain("tokens", &[], 1)], 0.0);
    let Some(disk) = SmallDisk::at(&world.project.home(), "64m") else { return };
    disk.fill();
    world.run().exits(4);
    disk.free();
    world.run().exits(0).says("1 of 1 features pass");
}

#[test]
fn a_landed_feature_passes_although_its_work_tree_cannot_be_removed() {
    let world = World::new(&[plain("tokens", &[], 1), plain("parser", &["tokens"], 1)], 0.0);
    world.project.set_sandbox("sandbox = \"off\"\n");
    let agent = world.project.read("agent.sh");
    let body = agent.strip_prefix("#!/bin/sh\n").unwrap();
    let mounts = "[ \"$LONGHAUL_FEATURE_ID\" = parser ] ||
        { mkdir build && mount -t tmpfs tmpfs build && pwd >\"$LONGHAUL_TEST_JOURNAL/../mounted\"; }";
    world.project.write("agent.sh", &format!("#!/bin/sh\n{mounts}\n{body}"));
    world.project.commit("An agent that mounts a file system");
    let output = world.run();
    let Ok(tree) = fs::read_to_string(world.project.place().join("mounted")) else {
        eprintln!("skipped: a file system can be mounted by the superuser only");
        return;
    };
    let unmounted =
        Command::new("umount").arg("--lazy").arg(Path::new(tree.trim()).join("build")).status();
    output.exits(0);
    assert!(unmounted.is_ok_and(|status| status.success()));
    assert_eq!(world.project.landed("main"), ["parser", "tokens"]);
    world.call("status .").exits(0).says("could not be removed");
}

/// An agent that does not commit. It waits after its work as long as the test needs.
const NO_COMMITS: &str = r#"#!/bin/sh
echo finished >"$LONGHAUL_FEATURE_ID.txt"
echo "$LONGHAUL_RUN_ID $LONGHAUL_SESSION $LONGHAUL_REASON" >"$LONGHAUL_TEST_JOURNAL/$LONGHAUL_SESSION"
while [ -e "$LONGHAUL_TEST_JOURNAL/../hold-$LONGHAUL_FEATURE_ID" ]; do sleep 0.05; done
"#;

/// A project whose agent holds after its work, and its run.
fn held_after_work() -> (World, Running) {
    let world = World::new(&[plain("parser", &[], 1)], 0.0);
    world.project.write("agent.sh", NO_COMMITS);
    world.project.commit("Take an agent that does not commit");
    world.project.hold("parser");
    let run = world.begin();
    until("the agent works", || !world.project.marks().is_empty());
    (world, run)
}

/// The work landed, and one session was paid for.
fn is_paid_once(world: &World) {
    assert_eq!(world.project.landed("main"), ["parser"]);
    let story = world.call("history parser").stdout;
    assert_eq!(parser(world)["sessions"], 1, "{story}");
}

#[test]
fn a_repository_that_is_away_at_the_end_of_a_session_is_waited_for() {
    let (world, mut run) = held_after_work();
    let (there, away) = (world.project.root().join(".git"), world.project.place().join("away"));
    fs::rename(&there, &away).unwrap();
    world.project.let_go("parser");
    until("it waits", || world.call("list -o json").stdout.contains("is not there"));
    fs::rename(&away, &there).unwrap();
    run.exits(0);
    is_paid_once(&world);
}

#[test]
fn a_target_branch_that_is_renamed_is_waited_for() {
    let (world, mut run) = held_after_work();
    world.project.git(&["branch", "-m", "main", "trunk"]);
    world.project.let_go("parser");
    until("it waits", || world.call("list -o json").stdout.contains("there is no branch `main`"));
    assert_ne!(parser(&world)["status"], "blocked");
    world.project.git(&["branch", "-m", "trunk", "main"]);
    run.exits(0);
    is_paid_once(&world);
}

#[test]
fn longhauls_own_git_directory_is_made_again() {
    let (world, mut run) = held_after_work();
    fs::remove_dir_all(world.project.home().join("git")).unwrap();
    world.project.let_go("parser");
    run.exits(0);
    assert_eq!(world.project.landed("main"), ["parser"]);
}
