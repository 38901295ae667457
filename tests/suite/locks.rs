//! Locks that a killed git left: none of them keeps a feature from coming to its end.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use longhaul_tests::project::plain;
use longhaul_tests::wait::until;

use crate::world::World;

/// An abandoned lock of that age.
fn lock(world: &World, name: &str, age: Duration) -> PathBuf {
    let path = world.project.root().join(".git").join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    File::create(&path).unwrap().set_modified(SystemTime::now() - age).unwrap();
    path
}

#[test]
fn locks_in_our_work_trees_and_refs_block_nothing() {
    let world = World::new(&[plain("parser", &[], 3)], 0.0);
    world.project.hold("parser");
    let mut run = world.begin();
    world.project.until_at_work("parser");
    assert!(run.kill());
    until("its agent is gone", || world.longhaul.left_over().is_empty());
    let tree = world.longhaul.home().join("worktrees").join(world.project_id()).join("parser");
    for name in ["HEAD.lock", "index.lock", "ORIG_HEAD.lock", "refs/heads/longhaul/parser.lock"] {
        fs::write(tree.join(".git").join(name), "").unwrap();
    }
    let names = [
        "refs/heads/longhaul/parser.lock",
        "refs/longhaul/features.lock",
        "packed-refs.lock",
        "packed-refs.new",
    ];
    for name in names {
        lock(&world, name, Duration::ZERO);
    }
    world.project.let_go("parser");
    world.run().exits(0);
    assert_eq!(world.project.landed("main"), ["parser"]);
}

#[test]
fn a_lock_that_a_check_leaves_in_the_work_tree_is_cleared_before_the_next_one() {
    let world = World::new(&[plain("parser", &[], 1)], 0.0);
    let list = world.project.read("feature_list.json");
    let leave = "touch $(git rev-parse --git-dir)/HEAD.lock; grep -q finished parser.txt";
    world.project.write("feature_list.json", &list.replace("grep -q finished parser.txt", leave));
    world.project.commit("A check that leaves a lock");
    world.run().exits(0);
}

#[test]
fn a_lock_of_the_users_makes_finished_work_wait_and_says_which() {
    let world = World::new(&[plain("parser", &[], 1)], 0.0);
    // Longhaul's own writing to the list must not be in the way either.
    let list = world.project.read("feature_list.json");
    world.project.write("feature_list.json", &list.replace("Make parser.", "Make a parser."));
    let held = lock(&world, "index.lock", Duration::from_hours(2));
    world.run().exits(3).says(".git/index.lock has existed since").says("rm '");
    let status = world.longhaul.status(&world.project.root());
    assert_eq!(status["counts"]["passed"], 1, "{status:#}");
    assert!(held.exists());
    assert!(world.project.landed("main").is_empty());

    let fresh = lock(&world, "HEAD.lock", Duration::from_secs(1));
    let output = world.longhaul.call(&["doctor", &world.root]);
    output.exits(0).says("index.lock is 120 min old").says("HEAD.lock is ");
    world.longhaul.call(&["doctor", &world.root, "--fix"]).exits(0);
    assert!(!held.exists(), "old and abandoned");
    assert!(fresh.exists(), "a fresh one may still be held");
    fs::remove_file(fresh).unwrap();
    world.run().exits(0);
    assert_eq!(world.project.landed("main"), ["parser"]);
}

#[test]
fn a_lock_of_the_target_branch_makes_finished_work_wait() {
    let world = World::new(&[plain("parser", &[], 1)], 0.0);
    world.project.git(&["checkout", "--quiet", "-b", "elsewhere"]);
    let settings = world.project.read("longhaul.toml");
    world
        .project
        .write("longhaul.toml", &settings.replace("[project]\n", "[project]\ntarget = \"main\"\n"));
    let held = lock(&world, "refs/heads/main.lock", Duration::from_hours(2));
    world.run().exits(3).says("refs/heads/main.lock has existed since");
    fs::remove_file(held).unwrap();
    world.run().exits(0);
    assert_eq!(world.project.landed("main"), ["parser"]);
}

#[test]
fn what_our_own_git_left_in_the_checkout_is_put_right_by_the_next_run() {
    let world = World::new(&[plain("parser", &[], 1), plain("table", &["parser"], 3)], 0.0);
    world.project.hold("table");
    let mut run = world.begin();
    world.project.until_at_work("table");
    run.terminate();
    run.exits(3);
    world.project.let_go("table");
    // As it is when git is killed together with us, while it moves the checkout forward: the index
    // has the list of the next commit already, and the user's list is as it was.
    let (root, id) = (world.project.root(), world.project_id());
    let saved = world.longhaul.home().join("saved").join(id);
    fs::create_dir_all(&saved).unwrap();
    let head = world.project.git(&["rev-parse", "HEAD"]);
    let list = "feature_list.json";
    let next = world.project.git(&["rev-parse", "HEAD:README.md"]);
    world.project.git(&["update-index", "--cacheinfo", &format!("100644,{next},{list}")]);
    let tree = world.project.git(&["write-tree"]);
    let next = world.project.git(&["commit-tree", "-p", &head, "-m", "Next", &tree]);
    let interrupted = serde_json::json!({
        "checkout": root, "branch": "main", "from": head, "to": next, "own_files": [list]
    });
    fs::write(saved.join("at-work-0123456789abcdef"), interrupted.to_string()).unwrap();
    lock(&world, "index.lock", Duration::ZERO);
    world.run().exits(0);
    assert!(!root.join(".git/index.lock").exists());
    let mut landed = world.project.landed("main");
    landed.sort();
    assert_eq!(landed, ["parser", "table"]);
}

/// The first git that fills a work tree waits; the others work as always.
const SLOW_GIT: &str = "#!/bin/sh\nPATH=${PATH#*:}\n\
case \"$*\" in *' read-tree '*) if mkdir 'PLACE/held' 2>/dev/null; then\n\
    while :; do sleep 0.05; done\nfi ;; esac\nexec git \"$@\"\n";

#[test]
fn a_git_that_outlives_its_owner_is_ended_by_the_next_one() {
    let world = World::new(&[plain("parser", &[], 1)], 0.0);
    let place = world.project.place();
    fs::create_dir(place.join("bin")).unwrap();
    let git = place.join("bin/git");
    fs::write(&git, SLOW_GIT.replace("PLACE", place.to_str().unwrap())).unwrap();
    fs::set_permissions(&git, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", place.join("bin").display(), std::env::var("PATH").unwrap());
    let longhaul = world.longhaul.clone().with("PATH", &path);
    let mut run = longhaul.begin(&["run", &world.root], &place.join("output"));
    until("git is at work", || place.join("held").exists());
    run.kill();
    let left = longhaul.left_over();
    assert!(left.iter().any(|process| process.contains("read-tree")), "{left:?}");
    longhaul.call(&["run", &world.root]).exits(0);
    assert_eq!(longhaul.left_over(), [""; 0]);
}
