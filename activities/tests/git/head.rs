//! An agent that leaves its branch loses nothing, and the tree returns to the branch.

use longhaul_workflows::contracts::{MergeStyle, Merged};

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
    world.seal_in("login", 1).await;
    write(&tree, "first.txt", "mine again\n");
    let before = commit(&tree, "Again");
    run(&tree, &["checkout", "--quiet", "--orphan", "fresh"]);
    write(&tree, "first.txt", "other\n");
    commit(&tree, "Fresh");
    let sealed = world.seal("login").await;
    assert_eq!(sealed.commit, before);
    assert_eq!(world.run(&["show", &format!("{}:first.txt", rescue("login", 2))]), "other");
    assert_eq!(read(&tree, "first.txt"), "mine again\n");
    assert_eq!(world.seal("login").await, sealed);
}

#[tokio::test]
async fn an_amended_first_commit_is_work_on_the_branch() {
    let world = World::new();
    world.open("login").await;
    let tree = world.tree("login");
    write(&tree, "src/a file.txt", "two\n");
    run(&tree, &["commit", "--quiet", "--all", "--amend", "-m", "All anew"]);
    check_anew(&world).await;
}

#[tokio::test]
async fn a_branch_without_history_is_work_on_the_branch() {
    let world = World::new();
    world.open("login").await;
    let tree = world.tree("login");
    run(&tree, &["checkout", "--quiet", "--orphan", "fresh"]);
    write(&tree, "src/a file.txt", "two\n");
    commit(&tree, "All anew");
    check_anew(&world).await;
}

/// Seals work whose history has nothing in common with the target, and lands it.
async fn check_anew(world: &World) {
    let base = world.at("main");
    let sealed = world.seal("login").await;
    assert_eq!(
        (sealed.files.as_slice(), &*sealed.tampered),
        (&["src/a file.txt".into()][..], &[][..])
    );
    assert_eq!(world.at("longhaul/login^"), base);
    assert_eq!(world.seal("login").await, sealed);
    world.write("other.txt", "since then\n");
    world.commit("Another");
    let merged = world.merge("login", &sealed.commit, MergeStyle::Squash).await;
    let Merged::Candidate { commit, tip, files, .. } = merged else { panic!("{merged:?}") };
    assert_eq!(files, ["feature_list.json", "src/a file.txt"]);
    world.land((&tip, &commit)).await.unwrap();
    assert_eq!(
        (world.read("src/a file.txt"), world.read("other.txt")),
        ("two\n".into(), "since then\n".into())
    );
}

#[tokio::test]
async fn a_target_that_began_anew_is_merged_by_content() {
    let world = World::new();
    world.open("login").await;
    write(&world.tree("login"), "work.txt", "work\n");
    let sealed = world.seal("login").await;
    world.write("other.txt", "all anew\n");
    world.run(&["add", "--all"]);
    world.run(&["commit", "--quiet", "--amend", "-m", "Begin anew"]);
    let merged = world.merge("login", &sealed.commit, MergeStyle::Squash).await;
    let Merged::Candidate { commit, tip, .. } = merged else { panic!("{merged:?}") };
    world.land((&tip, &commit)).await.unwrap();
    assert_eq!(world.run(&["ls-files"]).lines().filter(|file| file.ends_with("r.txt")).count(), 1);
    assert_eq!(world.read("work.txt"), "work\n");

    world.open("cart").await;
    write(&world.tree("cart"), "other.txt", "of the cart\n");
    let sealed = world.seal("cart").await;
    world.write("other.txt", "and again\n");
    world.run(&["commit", "--quiet", "--all", "--amend", "-m", "Again"]);
    world.run(&["checkout", "--quiet", "--orphan", "fresh"]);
    world.commit("Third");
    world.run(&["branch", "--quiet", "--force", "main"]);
    world.run(&["checkout", "--quiet", "main"]);
    let merged = world.merge("cart", &sealed.commit, MergeStyle::Squash).await;
    let Merged::Conflict { files, .. } = merged else { panic!("{merged:?}") };
    assert_eq!(files, ["other.txt"]);
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
