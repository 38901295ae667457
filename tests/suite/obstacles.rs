//! Pipes, directories and links in the place of files and directories: they stop no work for good.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::time::Duration;

use longhaul_tests::project::plain;
use longhaul_tests::wait::until;

use crate::world::World;

fn pipe(path: &Path) {
    let _ = fs::remove_file(path);
    nix::unistd::mkfifo(path, nix::sys::stat::Mode::S_IRWXU).unwrap();
}

#[test]
fn something_else_in_the_place_of_the_progress_file_is_shown_and_in_no_features_way() {
    let world = World::new(&[plain("parser", &[], 1)], 0.0);
    let file = world.project.root().join("claude-progress.txt");
    let _ = fs::remove_file(&file);
    fs::create_dir(&file).unwrap();
    world.project.hold("parser");
    let mut run = world.begin();
    world.project.until_at_work("parser");
    let finding = "claude-progress.txt is not a file; move it away, and Longhaul creates it";
    world.call("status .").exits(0).says(finding);
    world.call("doctor .").says(finding);
    until("it warns", || run.output().contains(finding));
    fs::remove_dir(&file).unwrap();
    world.project.let_go("parser");
    run.exits(0);
    let entries = world.project.read("claude-progress.txt");
    assert!(entries.contains("session_started"), "those from before are there: {entries}");
    assert_eq!(run.output().matches(finding).count(), 1, "{}", run.output());
    assert!(!world.call("status .").stdout.contains("noticed"));

    pipe(&file);
    world.project.write_list(&[plain("parser", &[], 1), plain("lexer", &[], 1)]);
    world.project.commit("More");
    world.run().exits(0);

    fs::remove_file(&file).unwrap();
    symlink("claude-progress.txt", &file).unwrap();
    let plans = ["parser", "lexer", "table"].map(|id| plain(id, &[], 1));
    world.project.write_list(&plans);
    world.project.commit("Still more");
    world.run().exits(0);
}

#[test]
fn a_repository_that_git_cannot_read_is_an_operational_error() {
    let world = World::new(&[plain("parser", &[], 1)], 0.0);
    let packed = world.project.root().join(".git/packed-refs");
    fs::create_dir(&packed).unwrap();
    world.run().exits(4).says("packed-refs");
    fs::remove_dir(&packed).unwrap();
    world.project.git(&["pack-refs", "--all"]);
    fs::write(&packed, "1111\n").unwrap();
    world.run().exits(4).says("longhaul doctor");
    world.call("doctor . --fix").exits(0);
    world.run().exits(0);
}

#[test]
fn a_lost_object_is_named_and_written_again_from_the_checkout() {
    let world = World::new(&[plain("parser", &[], 1)], 0.0);
    let object = world.project.git(&["rev-parse", "HEAD:agent.sh"]).trim().to_owned();
    let file = world.project.root().join(format!(".git/objects/{}/{}", &object[..2], &object[2..]));
    for is_empty in [true, false] {
        fs::remove_file(&file).unwrap();
        if is_empty {
            fs::write(&file, "").unwrap();
        } else {
            world.run().exits(4).says("longhaul doctor");
        }
        world.call("doctor .").exits(1).says(if is_empty { "are empty" } else { "are missing" });
        world.call("doctor . --fix").exits(0).says(&format!("{object}: put right"));
        world.call("doctor .").exits(0);
        world.project.git(&["fsck", "--strict"]);
    }
    let text = world.project.read("agent.sh");
    fs::remove_file(&file).unwrap();
    world.project.write("agent.sh", "other\n");
    world.call("doctor . --fix").exits(1).says("from another clone");
    world.project.write("agent.sh", &text);
    world.call("doctor . --fix").exits(0);
    world.run().exits(0);
}

#[test]
fn a_pipe_that_git_waits_at_is_named_at_once() {
    let world = World::new(&[plain("parser", &[], 1)], 0.0);
    let file = world.project.root().join(".gitattributes");
    pipe(&file);
    world.call("doctor .").exits(1).says(".gitattributes is a named pipe");
    fs::remove_file(&file).unwrap();
    world.run().exits(0);
}

/// The git commands that run in a directory.
fn git_commands_in(dir: &Path) -> usize {
    let mark = format!("git\0-C\0{}\0", dir.display());
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    lines.filter(|line| String::from_utf8_lossy(line).contains(&mark)).count()
}

#[test]
fn commands_of_git_end_with_the_command_that_started_them() {
    let world = World::new(&[plain("parser", &[], 1)], 0.0);
    let root = world.project.root();
    pipe(&root.join(".git/HEAD"));
    for command in ["status", "doctor", "run"] {
        let output = world.project.place().join(command);
        let mut running = world.longhaul.begin(&[command, &root.to_string_lossy()], &output);
        until("git waits", || git_commands_in(&root) > 0);
        running.terminate();
        until("git has ended", || git_commands_in(&root) == 0);
        running.exits(143);
    }
}

#[test]
fn a_git_directory_that_cannot_be_written_is_no_fault_of_the_request() {
    let world = World::new(&[plain("parser", &[], 1)], 0.0);
    // A directory in the place of the lock stops also a user who may write everywhere.
    let lock = world.project.root().join(".git/config.lock");
    fs::create_dir(&lock).unwrap();
    world.run().exits(4).says("config.lock");
    fs::remove_dir(&lock).unwrap();
    world.run().exits(0);
}

#[test]
fn directories_of_the_data_directory_can_be_links() {
    let world = World::new(&[plain("parser", &[], 1)], 0.0);
    world.project.set_sandbox("");
    let home = world.project.home();
    fs::create_dir_all(&home).unwrap();
    fs::set_permissions(&home, fs::Permissions::from_mode(0o700)).unwrap();
    for name in ["worktrees", "git", "logs", "sessions", "tmp"] {
        let moved = world.project.place().join("moved").join(name);
        fs::create_dir_all(&moved).unwrap();
        symlink(&moved, home.join(name)).unwrap();
    }
    let place = world.project.place().display().to_string();
    let agent = world.project.read("agent.sh");
    let body = agent.strip_prefix("#!/bin/sh\n").unwrap();
    let look = format!(
        "ls '{place}/moved/worktrees'/*/ '{place}/moved/git' >'{place}/journal/seen' 2>/dev/null"
    );
    world.project.write("agent.sh", &format!("#!/bin/sh\n{look}\n{body}"));
    world.project.commit("An agent that looks around");
    world.run().exits(0);
    assert_eq!(world.project.landed("main"), ["parser"]);
    let status = world.call("status .");
    assert!(!status.stdout.contains("noticed"), "{}", status.stdout);
    if longhaul_activities::process::available().bubblewrap.is_ok() {
        let seen = fs::read_to_string(world.project.place().join("journal/seen")).unwrap();
        let trees = seen.lines().filter(|line| !line.is_empty() && !line.ends_with(':'));
        assert_eq!(trees.collect::<Vec<_>>(), ["parser"], "its own tree only");
    }
}

#[test]
fn a_pipe_in_the_place_of_a_file_of_the_data_directory_is_named() {
    let world = World::new(&[plain("parser", &[], 1)], 0.0);
    world.run().exits(0);
    let home = world.project.home();
    pipe(&home.join("shutdown_marker"));
    pipe(&home.join("shutdown_marker.new"));
    world.run().exits(0);
    let lock = home.join("lock");
    pipe(&lock);
    let complaint = "is no regular file: move it away, and it is created";
    assert_ne!(world.run().says(complaint).code(), 0);
    world.call("status .").says(complaint);
    world.call("doctor .").exits(1).says(complaint);
    fs::remove_file(&lock).unwrap();
    world.run().exits(0);
}

/// The git processes that this process started, without the one that waits for names.
fn gits_of(pid: u32) -> Vec<i32> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let stats = entries.filter_map(|entry| fs::read_to_string(entry.path().join("stat")).ok());
    let git = |stat: String| {
        let (git, rest) = stat.split_once(" (git) ")?;
        let parent: u32 = rest.split(' ').nth(1)?.parse().ok()?;
        let command = fs::read(format!("/proc/{git}/cmdline")).ok()?;
        let is_reader = String::from_utf8_lossy(&command).contains("--batch-check");
        (parent == pid && !is_reader).then(|| git.parse().ok())?
    };
    stats.filter_map(git).collect()
}

#[test]
fn a_git_that_hangs_keeps_neither_terminate_nor_a_signal_waiting() {
    let world = World::new(&[plain("parser", &[], 1)], 0.0);
    let tree = world.project.git(&["rev-parse", "HEAD:agent.sh"]);
    let tree = tree.trim();
    pipe(&world.project.root().join(format!(".git/objects/{}/{}", &tree[..2], &tree[2..])));
    let hanging = |pid: u32| {
        until("a git that hangs", || {
            let before = gits_of(pid);
            std::thread::sleep(Duration::from_millis(500));
            gits_of(pid).iter().any(|git| before.contains(git))
        });
    };
    let mut run = world.begin();
    hanging(run.id());
    run.terminate();
    until("it stops", || run.output().contains("stopping"));
    run.terminate();
    assert!(run.wait_for(Duration::from_mins(1)).is_some());

    let mut run = world.begin();
    hanging(run.id());
    world.call("doctor .").exits(1).says("objects of git are empty");
    let project = world.project_id();
    world.call(&format!("terminate {project}/parser/1")).exits(0);
    run.exits(3);
    assert!(gits_of(run.id()).is_empty());
}
