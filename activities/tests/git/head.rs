//! An agent that leaves its branch loses nothing, and the tree returns to the branch.

use crate::support::{World, commit, read, rescue, run, status, write};

#[tokio::test]
async fn commits_on_a_detached_head_become_the_branch() {
    let world = World::new();
    world.open("login").await;
    let tree = world.tree("login");
    run(&tree, &["checkout", "--quiet", "--detach"]);
    write(&tree, "work.txt", "work\n");
    let made = commit(&tree, "Detached");
    let sealed = world.seal("login").await;
    assert_eq!(
        (sealed.commit.as_str(), sealed.tampered.as_slice()),
        (made.as_str(), [].as_slice())
    );
    assert_eq!(run(&tree, &["branch", "--show-current"]), "longhaul/login");
}

#[tokio::test]
async fn another_branch_that_goes_on_from_it_becomes_the_branch() {
    let world = World::new();
    world.open("login").await;
    let tree = world.tree("login");
    run(&tree, &["checkout", "--quiet", "-b", "feature/login"]);
    write(&tree, "work.txt", "work\n");
    let made = commit(&tree, "Elsewhere");
    write(&tree, "more.txt", "more\n");
    let sealed = world.seal("login").await;
    assert_eq!(sealed.files, ["more.txt", "work.txt"]);
    assert_eq!(world.at("longhaul/login^"), made);
    assert_eq!(sealed.rescued, None);
}

#[tokio::test]
async fn work_on_something_else_is_kept_and_taken_along() {
    let world = World::new();
    world.open("login").await;
    let tree = world.tree("login");
    write(&tree, "first.txt", "first\n");
    world.seal_in("login", 1).await;
    run(&tree, &["checkout", "--quiet", "--detach", "main"]);
    write(&tree, "second.txt", "second\n");

    let sealed = world.seal("login").await;
    assert_eq!(sealed.files, ["first.txt", "second.txt"]);
    let report = &sealed.tampered[0];
    let expected =
        "the work tree was on a detached HEAD and not on longhaul/login; that state is kept";
    assert_eq!((report.file.as_str(), report.what.as_str()), ("HEAD", expected));
    assert_eq!(world.run(&["show", &format!("{}:second.txt", rescue("login", 2))]), "second");
    assert_eq!(status(&tree), "");
    assert_eq!(world.seal("login").await, sealed);
}

#[tokio::test]
async fn a_mere_look_at_another_commit_changes_nothing() {
    let world = World::new();
    world.open("login").await;
    let tree = world.tree("login");
    write(&tree, "first.txt", "first\n");
    let before = world.seal_in("login", 1).await;
    run(&tree, &["checkout", "--quiet", "--detach", "main"]);
    let sealed = world.seal("login").await;
    assert_eq!((sealed.commit, sealed.tampered.len()), (before.commit, 1));
    assert_eq!(read(&tree, "first.txt"), "first\n");
}

#[tokio::test]
async fn a_conflicting_state_is_kept_and_the_branch_goes_on() {
    let world = World::new();
    world.open("login").await;
    let tree = world.tree("login");
    write(&tree, "first.txt", "mine\n");
    let before = world.seal_in("login", 1).await;
    run(&tree, &["checkout", "--quiet", "--orphan", "fresh"]);
    write(&tree, "first.txt", "other\n");
    commit(&tree, "Fresh");
    let sealed = world.seal("login").await;
    assert_eq!(sealed.commit, before.commit);
    assert_eq!(world.run(&["show", &format!("{}:first.txt", rescue("login", 2))]), "other");
    assert_eq!(read(&tree, "first.txt"), "mine\n");
    assert_eq!(world.seal("login").await, sealed);
}

#[tokio::test]
async fn an_interrupted_rebase_is_ended() {
    let world = World::new();
    world.open("login").await;
    let tree = world.tree("login");
    write(&tree, "src/a file.txt", "mine\n");
    let mine = commit(&tree, "Mine");
    world.write("src/a file.txt", "ours\n");
    world.commit("Ours");
    crate::support::run_failing(&tree, &["rebase", &world.at("main")]);
    let sealed = world.seal("login").await;
    assert_eq!(sealed.commit, mine);
    assert_eq!(sealed.tampered[0].file, "HEAD");
    assert_eq!(status(&tree), "");
    assert!(!run(&tree, &["status"]).contains("rebas"));
}
