//! Work that is interrupted at any moment and repeated reaches the same end.

use std::time::Duration;

use longhaul_workflows::contracts::MergeStyle;

use crate::support::{World, read, rescue, status, write};

/// Interrupts `work` after increasing times; its git processes are killed too.
async fn broken_off<F: Future>(work: impl Fn() -> F) {
    for millis in [0, 3, 7, 12, 18, 25, 33, 42] {
        let _ = tokio::time::timeout(Duration::from_millis(millis), work()).await;
    }
}

#[tokio::test]
async fn opening() {
    let world = World::new();
    broken_off(|| world.try_open("login", 1)).await;
    let opened = world.open("login").await;
    assert_eq!((opened.head, opened.rescued), (world.at("main"), None));
    write(&world.tree("login"), "work.txt", "work\n");
    broken_off(|| world.try_open("login", 2)).await;
    assert_eq!(world.open_in("login", 2).await.rescued, Some(rescue("login", 2)));
    assert_eq!(world.run(&["show", &format!("{}:work.txt", rescue("login", 2))]), "work");
    assert_eq!(status(&world.tree("login")), "");
}

#[tokio::test]
async fn a_private_branch_that_was_left_behind_takes_nothing_back() {
    let world = World::new();
    world.open("login").await;
    let tree = world.tree("login");
    write(&tree, "work.txt", "work\n");
    let private = tree.join(".git/refs/heads/longhaul/login");
    let before = std::fs::read(&private).unwrap();
    let sealed = world.seal("login").await;
    // Killed after the project's branch moved, before the private one did.
    std::fs::write(&private, &before).unwrap();
    let records = world.data().join("git/shop-1a2b3c/trees/login");
    std::fs::write(records.join("branch"), before.trim_ascii_end()).unwrap();
    assert_eq!(world.seal("login").await.commit, sealed.commit);
    assert_eq!(world.open("login").await.head, sealed.commit);
    assert_eq!(world.at("longhaul/login"), sealed.commit);
}

#[tokio::test]
async fn sealing() {
    let world = World::new();
    world.open("login").await;
    let tree = world.tree("login");
    write(&tree, "work.txt", "work\n");
    write(&tree, "acceptance/login.sh", "exit 1\n");
    broken_off(|| world.seal("login")).await;
    let sealed = world.seal("login").await;
    assert_eq!(sealed.files, ["work.txt"]);
    assert_eq!(
        sealed.tampered.len(),
        1,
        "files reverted before the interruption are still reported"
    );
    assert_eq!(read(&tree, "acceptance/login.sh"), "exit 0\n");
    assert_eq!(
        world.run(&["show", &format!("{}:acceptance/login.sh", rescue("login", 2))]),
        "exit 1"
    );
    assert_eq!(status(&tree), "");
}

#[tokio::test]
async fn a_revert_that_was_cut_short_does_not_hide_the_state_that_was_kept() {
    let world = World::new();
    world.open("login").await;
    let tree = world.tree("login");
    write(&tree, "acceptance/login.sh", "exit 1\n");
    world.seal("login").await;
    // Git removes a file before it writes the other version.
    std::fs::remove_file(tree.join("acceptance/login.sh")).unwrap();
    world.seal("login").await;
    assert_eq!(read(&tree, "acceptance/login.sh"), "exit 0\n");
    let kept = format!("{}:acceptance/login.sh", rescue("login", 2));
    assert_eq!(world.run(&["show", &kept]), "exit 1");
}

#[cfg(unix)]
#[tokio::test]
async fn a_tree_that_became_a_link_is_made_again_and_the_link_is_not_followed() {
    let world = World::new();
    world.open("login").await;
    let (tree, elsewhere) = (world.tree("login"), world.root.parent().unwrap().join("elsewhere"));
    write(&elsewhere, "users.txt", "mine\n");
    for again in [true, false] {
        std::fs::remove_dir_all(&tree).unwrap();
        std::os::unix::fs::symlink(&elsewhere, &tree).unwrap();
        if again {
            world.open_in("login", 2).await;
        } else {
            assert!(world.seal("login").await.files.is_empty());
        }
        assert!(!tree.is_symlink() && !tree.join("users.txt").exists());
        assert_eq!(read(&elsewhere, "users.txt"), "mine\n");
        assert!(!elsewhere.join(".git").exists());
    }
}

#[tokio::test]
async fn merging_and_closing() {
    let world = World::new();
    world.open("login").await;
    write(&world.tree("login"), "work.txt", "work\n");
    let sealed = world.seal("login").await;
    broken_off(|| world.merge("login", &sealed.commit, MergeStyle::Squash)).await;
    let merged = world.merge("login", &sealed.commit, MergeStyle::Squash).await;
    broken_off(|| world.integrated(&merged)).await;
    let worktree = world.integrated(&merged).await;
    assert_eq!(read(&worktree, "work.txt"), "work\n");
    assert_eq!(status(&worktree), "");

    write(&world.tree("login"), "late.txt", "late\n");
    broken_off(|| world.close("login")).await;
    world.close("login").await;
    assert_eq!(world.at("refs/longhaul/features/shop-1a2b3c/login"), sealed.commit);
    assert_eq!(world.run(&["show", &format!("{}:late.txt", rescue("login", 6))]), "late");
    assert!(!world.exists("longhaul/login") && !world.tree("login").exists());
}

#[tokio::test]
async fn a_lock_that_an_agent_left_when_it_was_killed_holds_up_nothing() {
    let world = World::new();
    world.open("login").await;
    let lock = world.root.join(".git/packed-refs.lock");
    let begun = std::time::Instant::now();
    write(&world.root, ".git/packed-refs.lock", "");
    world.close("login").await;
    assert!(!world.exists("longhaul/login") && !lock.exists());
    assert!(begun.elapsed() >= Duration::from_secs(1), "a fresh lock may still be in use");
}
