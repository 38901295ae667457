//! `RefreshWorktree`: merges the target into the work.

use crate::support::World;

#[tokio::test]
async fn a_branch_without_work_moves_to_the_tip() {
    let world = World::new();
    world.open("login").await;
    world.write("later.txt", "later\n");
    let tip = world.commit("Later");
    let refreshed = world.refresh("login", 2).await;
    assert_eq!((&refreshed.commit, &refreshed.tip, refreshed.files.len()), (&tip, &tip, 0));
    assert!(world.tree("login").join("later.txt").exists());
}

#[tokio::test]
async fn work_gets_a_merge_of_the_tip_once() {
    let world = World::new();
    world.open("login").await;
    std::fs::write(world.tree("login").join("login.txt"), "login\n").unwrap();
    let sealed = world.seal("login").await;
    world.write("later.txt", "later\n");
    let tip = world.commit("Later");
    let refreshed = world.refresh("login", 3).await;
    assert_eq!(
        world.run(&["log", "-1", "--format=%P", &refreshed.commit]),
        format!("{} {tip}", sealed.commit)
    );
    assert_eq!((refreshed.files, refreshed.conflict), (vec!["login.txt".to_owned()], None));
    assert!(world.tree("login").join("later.txt").exists());
    assert_eq!(world.at("longhaul/login"), refreshed.commit);
    let again = world.refresh("login", 4).await;
    assert_eq!(again.commit, refreshed.commit, "the tip is in it already");
    // The process died after the branch had moved and before the files were updated.
    std::fs::remove_file(world.tree("login").join("later.txt")).unwrap();
    world.refresh("login", 5).await;
    assert!(world.tree("login").join("later.txt").exists());
    assert!(world.open("login").await.has_work);
}

#[tokio::test]
async fn a_conflict_changes_nothing() {
    let world = World::new();
    world.open("login").await;
    std::fs::write(world.tree("login").join("page.txt"), "ours\n").unwrap();
    let sealed = world.seal("login").await;
    world.write("page.txt", "theirs\n");
    let tip = world.commit("Theirs");
    let refreshed = world.refresh("login", 3).await;
    let conflict = refreshed.conflict.expect("both added the file");
    assert_eq!((refreshed.commit, refreshed.tip), (sealed.commit.clone(), tip));
    assert_eq!(conflict.files, ["page.txt"]);
    assert_eq!(world.at("longhaul/login"), sealed.commit);
    assert_eq!(std::fs::read_to_string(world.tree("login").join("page.txt")).unwrap(), "ours\n");
}
