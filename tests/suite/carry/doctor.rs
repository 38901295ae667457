//! The doctor: what a dead owner left, what is missing, and what can be put right.

use std::cell::RefCell;
use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, SystemTime};

use longhaul_engine::store::Commit;
use longhaul_engine::{Event, EventKind, EventLog, RunId, RunReader, Summary};
use longhaul_storage::SledStore;
use longhaul_tests::project::plain;
use longhaul_tests::wait::until;
use serde_json::Value;

use super::world::World;

/// The findings about one matter: how bad, and what.
fn about(report: &Value, subject: &str) -> Vec<(String, String)> {
    let findings = report["findings"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|finding| finding["subject"] == subject);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    findings.map(|finding| (text(&finding["state"]), text(&finding["what"]))).collect()
}

#[test]
fn a_healthy_place_is_fine() {
    let world = World::finished();
    let output = world.longhaul.call(&["doctor", &world.root]);
    output
        .exits(0)
        .says("0 problems, 0 warnings")
        .says("`./agent.sh` is there")
        .says("is yours alone");
    let report = world.longhaul.call(&["doctor", &world.root, "-o", "json"]).exits(0).json();
    assert_eq!(report["schema"], "longhaul.doctor/1");
    let never = world.elsewhere("never");
    never.call(&["doctor", "/"]).exits(0).says("is not there yet").says("none was looked at");
    assert!(!never.home().exists(), "looking makes nothing");
}

#[test]
fn what_a_killed_owner_left_is_found_and_put_right() {
    let mut world = World::new(&[plain("parser", &[], 1)], 0.0);
    world.project.hold("parser");
    let mut run = world.at_work("parser");
    let report = world.longhaul.call(&["doctor", &world.root, "-o", "json"]).exits(0).json();
    assert!(about(&report, "owner")[0].1.contains("runs this log"), "{report:#}");
    assert!(run.kill());
    let home = world.longhaul.home();
    assert!(home.join("owner.sock").exists());
    fs::set_permissions(home, Permissions::from_mode(0o755)).unwrap();
    let lock = world.project.root().join(".git/refs/heads/longhaul/parser.lock");
    old_file(&lock);
    let own = world.project.root().join(".git/index.lock");
    old_file(&own);
    until("the agent is gone", || world.longhaul.left_over().is_empty());
    let left = std::process::Command::new("sleep")
        .arg("600")
        .env("LONGHAUL_OWNER", longhaul_activities::process::owner_id(home))
        .spawn()
        .unwrap();
    let left = RefCell::new(scopeguard(left));

    let output = world.longhaul.call(&["doctor", &world.root]);
    output
        .exits(0)
        .says("owner.sock was left by an owner that was killed")
        .says("chmod 700")
        .says("`sleep 600`");
    output.says("parser.lock is ").says("index.lock is ").says("--fix");
    let fixed =
        world.longhaul.call(&["doctor", &world.root, "--fix", "-o", "json"]).exits(0).json();
    for subject in ["data directory", "socket", "process"] {
        assert!(about(&fixed, subject).iter().all(|(state, _)| state == "ok"), "{fixed:#}");
    }
    until("it is ended", || left.borrow_mut().0.try_wait().unwrap().is_some());
    assert!(!home.join("owner.sock").exists() && !lock.exists());
    assert!(!own.exists(), "it is old, and no process holds it");
    assert_eq!(fs::metadata(home).unwrap().permissions().mode() & 0o777, 0o700);
    let again = world.longhaul.call(&["doctor", &world.root, "-o", "json"]).exits(0).json();
    let bad =
        again["findings"].as_array().unwrap().iter().filter(|finding| finding["state"] != "ok");
    assert_eq!(bad.count(), 0, "{again:#}");
}

/// A process that is killed with its test.
struct Left(std::process::Child);

impl Drop for Left {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn scopeguard(child: std::process::Child) -> Left {
    Left(child)
}

/// A file that has been there for an hour.
fn old_file(path: &std::path::Path) {
    let file = File::create(path).unwrap();
    file.set_modified(SystemTime::now() - Duration::from_hours(1)).unwrap();
}

#[test]
fn what_keeps_a_project_from_running_is_a_problem() {
    let world = World::finished();
    world.project.write("longhaul.toml", "[agent]\ncommand = [\"no-such-agent\"]\n");
    world
        .longhaul
        .call(&["doctor", &world.root])
        .exits(1)
        .says("`no-such-agent` is not there")
        .says("install it");
    world.project.write("longhaul.toml", "[agent\n");
    world.longhaul.call(&["doctor", &world.root]).exits(1).says("longhaul.toml");
    let tree = world.longhaul.home().join("worktrees").join(&world.id).join("forgotten");
    fs::create_dir_all(&tree).unwrap();
    world.longhaul.call(&["doctor", &world.root]).exits(1).says("forgotten belongs to no feature");
    assert!(tree.exists());
}

#[test]
fn an_owner_that_does_not_answer_is_named() {
    let world = World::finished();
    let held = SledStore::open(world.longhaul.home()).unwrap();
    let pid = std::process::id().to_string();
    let hasty = world.longhaul.clone().with("LONGHAUL_WAIT", "1");
    hasty
        .call(&["doctor", "/"])
        .exits(1)
        .says(&format!("process {pid} has the log open and does not answer"));
    hasty.call(&["check"]).exits(4).says("does not answer");
    held.close();
    world.longhaul.call(&["check"]).exits(0);
}

/// The history of a feature that begins with a decision which no version of the workflow makes.
fn begin_a_run_that_cannot_go_on(world: &World) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let run =
        RunId::new(format!("{}/lost/1", world.project.git(&["config", "longhaul.id"]))).unwrap();
    runtime.block_on(async {
        let store = SledStore::open(world.longhaul.home()).unwrap();
        let runs = store.runs(run.as_str().trim_end_matches("lost/1")).await.unwrap();
        let (of, _) = runs.into_iter().find(|(_, summary)| summary.workflow == "feature").unwrap();
        let mut events = store.read(&of, 0).await.unwrap();
        events.truncate(1);
        let mut summary = Summary::begin(&events[0]).unwrap();
        let kind = EventKind::TimeRead { command: 0 };
        events.push(Event { position: 1, at: events[0].at, kind });
        summary.apply(&events[1]);
        store.commit(Commit { summary: Some(summary), ..Commit::of(run, events) }).await.unwrap();
    });
}

#[test]
fn a_run_that_cannot_go_on_is_a_problem() {
    let world = World::finished();
    begin_a_run_that_cannot_go_on(&world);
    let output = world.longhaul.call(&["doctor", &world.root]);
    output.exits(1).says("/lost/1 cannot go on: diverged at position 1").says("longhaul terminate");
}
