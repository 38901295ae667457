//! A target that a person moves back while an agent works: the agent has not tampered.

use longhaul_workflows::contracts::{MergeStyle, Merged};

use crate::support::{LIST, World, commit, read, run, write};

const MARKED: &str = "claude-progress.txt";

/// A world whose last commit changed protected files, and a tree of the login that is based on it.
async fn based_on_a_change() -> World {
    let world = World::new();
    world.write("acceptance/login.sh", "exit 0 # better\n");
    world.write("feature_list.json", &LIST.replacen("Cart", "The cart", 1));
    world.write(MARKED, "Earlier.\n");
    world.commit("Better");
    world.open("login").await;
    world
}

#[tokio::test]
async fn an_agent_whose_target_was_moved_back_has_not_tampered() {
    let world = based_on_a_change().await;
    world.run(&["reset", "--quiet", "--hard", "HEAD~1"]);
    for (command, file) in [(2, "one.txt"), (4, "two.txt")] {
        write(&world.tree("login"), file, "work\n");
        let sealed = world.seal_in("login", command).await;
        assert_eq!((sealed.tampered, sealed.notes.as_str()), (vec![], ""), "{file}");
        world.open_in("login", command + 1).await;
    }
    write(&world.tree("login"), "acceptance/login.sh", "true\n");
    let sealed = world.seal_in("login", 6).await;
    assert_eq!(sealed.tampered.len(), 1);
    assert_eq!(read(&world.tree("login"), "acceptance/login.sh"), "exit 0\n");
}

#[tokio::test]
async fn an_agent_that_amends_the_last_commit_has_not_tampered() {
    let world = based_on_a_change().await;
    let tree = world.tree("login");
    write(&tree, "work.txt", "work\n");
    run(&tree, &["add", "--all"]);
    run(&tree, &["commit", "--quiet", "--amend", "-m", "Mine now"]);
    assert_eq!(world.seal("login").await.tampered, []);
}

#[tokio::test]
async fn an_older_protected_file_in_newer_work_is_tampering() {
    let world = based_on_a_change().await;
    world.write("acceptance/login.sh", "exit 0 # best\n");
    world.commit("Best");
    let tree = world.tree("login");
    run(&tree, &["merge", "--quiet", &world.at("main")]);
    write(&tree, "acceptance/login.sh", "exit 0 # better\n");
    commit(&tree, "Not that good");
    let sealed = world.seal("login").await;
    assert_eq!(sealed.tampered.len(), 1, "{sealed:?}");
    assert_eq!(read(&tree, "acceptance/login.sh"), "exit 0 # best\n");
}

#[tokio::test]
async fn what_the_user_committed_beside_waiting_work_is_no_tampering() {
    let world = World::new();
    let (tip, login) = world.candidate("login", "login.txt", "login\n").await;
    world.write("src/a file.txt", "mine\n");
    world.land((&tip, &login)).await.unwrap();
    world.write("acceptance/login.sh", "exit 0 # better\n");
    world.run(&["commit", "--quiet", "-m", "Better", "acceptance/login.sh"]);
    world.open("cart").await;
    write(&world.tree("cart"), "cart.txt", "cart\n");
    assert_eq!(world.seal("cart").await.tampered, []);
}

/// A landed commit with `cart.txt`, and sealed work on the login that is based on it.
async fn work_on_a_landing() -> (World, String, String) {
    let world = World::new();
    let begin = world.at("main");
    let (tip, cart) = world.candidate("cart", "cart.txt", "cart\n").await;
    world.land((&tip, &cart)).await.unwrap();
    world.open("login").await;
    write(&world.tree("login"), "login.txt", "login\n");
    let sealed = world.seal("login").await.commit;
    (world, begin, sealed)
}

async fn merged(world: &World, work: &str) -> String {
    let merged = world.merge("login", work, MergeStyle::Squash).await;
    let Merged::Candidate { commit, .. } = merged else { panic!("{merged:?}") };
    world.run(&["ls-tree", "-r", "--name-only", &commit, "cart.txt", "login.txt"])
}

#[tokio::test]
async fn work_does_not_bring_back_what_a_person_took_from_the_target() {
    let (world, begin, sealed) = work_on_a_landing().await;
    world.run(&["reset", "--quiet", "--hard", &begin]);
    assert_eq!(merged(&world, &sealed).await, "login.txt");
    // A retry starts from the target as it is now.
    let refreshed = world.refresh("login", 5).await;
    assert!(!world.tree("login").join("cart.txt").exists());
    assert_eq!(merged(&world, &refreshed.commit).await, "login.txt");
    // The cart lands again, and belongs to the target.
    world.run(&["reset", "--quiet", "--hard", "ORIG_HEAD"]);
    let refreshed = world.refresh("login", 6).await;
    assert_eq!(merged(&world, &refreshed.commit).await, "cart.txt\nlogin.txt");
}

#[tokio::test]
async fn a_tree_that_is_made_again_knows_which_landing_its_work_is_based_on() {
    let (world, begin, sealed) = work_on_a_landing().await;
    world.close("login").await;
    world.run(&["branch", "--quiet", "--force", "longhaul/login", &sealed]);
    world.run(&["reset", "--quiet", "--hard", &begin]);
    let opened = world.open_in("login", 7).await;
    assert_eq!(opened.head, sealed);
    assert_eq!(merged(&world, &sealed).await, "login.txt");
}

/// A fork continues in a tree that no feature has opened.
#[tokio::test]
async fn a_tree_without_a_record_of_its_base_knows_the_landings_of_the_project() {
    let (world, begin, sealed) = work_on_a_landing().await;
    let record = world.data().join("git/shop-1a2b3c/trees/login/base");
    std::fs::remove_file(record).unwrap();
    world.run(&["reset", "--quiet", "--hard", &begin]);
    assert_eq!(merged(&world, &sealed).await, "login.txt");
}
