//! Unusual repositories: the whole path of a feature works in them too.

use crate::support::{World, commit, run, status, write};

/// Takes a feature from opening to closing.
async fn check_whole_way(world: &World) {
    let (tip, commit) = world.candidate("login", "login.txt", "login\n").await;
    assert_eq!(status(&world.tree("login")), "");
    assert_eq!(world.land((&tip, &commit)).await.unwrap().waits_on_next, None);
    world.close("login").await;
    assert_eq!(world.at("main"), commit);
    assert_eq!(world.run(&["diff", "--name-only", &tip, "main"]), "feature_list.json\nlogin.txt");
}

#[tokio::test]
async fn submodules() {
    let world = World::new();
    let inner = world.root.parent().unwrap().join("inner");
    write(&inner, "file.txt", "inner\n");
    run(&inner, &["init", "--quiet"]);
    commit(&inner, "Inner");
    let add = [
        "-c",
        "protocol.file.allow=always",
        "submodule",
        "--quiet",
        "add",
        inner.to_str().unwrap(),
        "module",
    ];
    world.run(&add);
    world.commit("With a submodule");
    check_whole_way(&world).await;
    assert_eq!(status(&world.root), "");

    world.open("cart").await;
    let tree = world.tree("cart");
    run(&tree, &["-c", "protocol.file.allow=always", "submodule", "--quiet", "update", "--init"]);
    assert_eq!(world.seal("cart").await.files, [""; 0]);
    world.close("cart").await;
    assert!(!tree.exists());
}

#[tokio::test]
async fn sparse_checkouts() {
    let world = World::new();
    world.run(&["sparse-checkout", "set", "src"]);
    assert!(!world.root.join("acceptance").exists());
    check_whole_way(&world).await;
    world.open("cart").await;
    assert!(world.tree("cart").join("acceptance/login.sh").exists(), "an agent gets all files");
    assert_eq!(world.seal("cart").await.tampered, []);
    assert!(!world.root.join("acceptance").exists(), "the user's checkout stays sparse");
}

#[tokio::test]
async fn linked_work_trees_of_the_users() {
    let mut world = World::new();
    let linked = world.root.parent().unwrap().join("linked");
    world.run(&["checkout", "--quiet", "-b", "elsewhere"]);
    world.run(&["worktree", "add", "--quiet", linked.to_str().unwrap(), "main"]);
    world.root = linked;
    check_whole_way(&world).await;
    assert_eq!(status(&world.root), "");
}

#[tokio::test]
async fn line_endings_that_git_changes() {
    let world = World::new();
    world.run(&["config", "core.autocrlf", "true"]);
    world.run(&["config", "core.safecrlf", "true"]);
    check_whole_way(&world).await;
    world.open("cart").await;
    let sealed = world.seal("cart").await;
    assert_eq!((sealed.files, sealed.tampered), (vec![], vec![]));
}
