//! Closing leaves only the refs that keep everything.

use crate::support::{World, rescue, run, write};

#[tokio::test]
async fn nothing_is_left_but_refs() {
    let world = World::new();
    world.open("login").await;
    let tree = world.tree("login");
    write(&tree, "work.txt", "work\n");
    let sealed = world.seal("login").await;
    write(&tree, "late.txt", "late\n");
    for _ in 0..2 {
        world.close("login").await;
        assert!(!tree.exists());
        assert!(!world.exists("refs/heads/longhaul/login"));
        assert_eq!(world.at("refs/longhaul/features/shop-1a2b3c/login"), sealed.commit);
        assert_eq!(world.run(&["show", &format!("{}:late.txt", rescue("login", 6))]), "late");
        assert_eq!(world.run(&["worktree", "list"]).lines().count(), 1);
    }
}

#[tokio::test]
async fn a_close_that_was_killed_halfway_is_finished() {
    let world = World::new();
    world.open("login").await;
    std::fs::remove_dir_all(world.tree("login")).unwrap();
    world.close("login").await;
    assert_eq!(world.run(&["worktree", "list"]).lines().count(), 1);
    assert!(!world.exists("refs/heads/longhaul/login"));
}

#[tokio::test]
async fn commits_outside_of_the_branch_are_kept() {
    let world = World::new();
    world.open("login").await;
    let tree = world.tree("login");
    run(&tree, &["checkout", "--quiet", "--detach"]);
    write(&tree, "stray.txt", "stray\n");
    let stray = crate::support::commit(&tree, "Stray");
    world.close("login").await;
    assert_eq!(world.at(&format!("{}^", rescue("login", 6))), stray);
}
