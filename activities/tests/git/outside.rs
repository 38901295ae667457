//! Branches moved outside of Longhaul: nothing lands without gates, and the move is reported.

use longhaul_workflows::contracts::{MergeStyle, Merged, OutsideChange};

use crate::support::{World, commit, run, status, write};

/// An ungated commit on top of another one.
fn ungated(world: &World, parent: &str) -> String {
    world.run(&["commit-tree", "-p", parent, "-m", "Ungated", &format!("{parent}^{{tree}}")])
}

fn change(from: Option<&str>, to: Option<&str>) -> Vec<OutsideChange> {
    let [from, to] = [from, to].map(|commit| commit.map(str::to_owned));
    vec![OutsideChange { branch: "longhaul/next".into(), from, to, put_back: true }]
}

fn kept(commit: &str) -> String {
    format!("refs/longhaul/foreign/{}", &commit[..10])
}

/// A world where the login waits because of a user's change.
async fn waiting() -> (World, String) {
    let world = World::new();
    let (tip, commit) = world.candidate("login", "login.txt", "login\n").await;
    world.write("src/a file.txt", "mine\n");
    assert!(world.land((&tip, &commit)).await.unwrap().waits_on_next.is_some());
    (world, commit)
}

#[tokio::test]
async fn a_next_that_longhaul_did_not_make_is_no_base_of_work() {
    let world = World::new();
    world.open("login").await;
    let foreign = ungated(&world, "main");
    world.run(&["update-ref", "refs/heads/longhaul/next", &foreign]);
    let (tip, commit) = world.candidate("cart", "cart.txt", "cart\n").await;
    assert_eq!(tip, world.at("main"));
    world.run(&["update-ref", "refs/heads/longhaul/next", &foreign]);
    let landed = world.land((&tip, &commit)).await.unwrap();
    assert_eq!((landed.target_commit, landed.outside), (commit, change(None, Some(&foreign))));
    assert!(!world.exists("longhaul/next"));
    assert_eq!(world.at(&kept(&foreign)), foreign);
}

#[tokio::test]
async fn a_next_from_before_the_first_use_counts_only_with_a_landing_of_this_project() {
    let world = World::new();
    let foreign = ungated(&world, "main");
    world.run(&["update-ref", "refs/heads/longhaul/next", &foreign]);
    let (tip, _) = world.candidate("cart", "cart.txt", "cart\n").await;
    assert_eq!((tip, world.exists("longhaul/next")), (world.at("main"), false));
    assert_eq!(world.at(&kept(&foreign)), foreign);

    let world = World::new();
    world.run(&["checkout", "--quiet", "--detach"]);
    let trailers = "Add it\n\nFeature-Id: it\nRun-Id: shop-1a2b3c/it/1";
    world.run(&["commit", "--quiet", "--allow-empty", "-m", trailers]);
    world.run(&["branch", "--quiet", "longhaul/next"]);
    world.run(&["checkout", "--quiet", "main"]);
    let (tip, _) = world.candidate("cart", "cart.txt", "cart\n").await;
    assert_eq!(tip, world.at("longhaul/next"));
}

#[tokio::test]
async fn a_next_that_was_moved_is_put_back() {
    let (world, ours) = waiting().await;
    let foreign = ungated(&world, &ours);
    world.run(&["update-ref", "refs/heads/longhaul/next", &foreign]);
    world.run(&["checkout", "--quiet", "--", "."]);
    let landed = world.follow().await;
    assert_eq!(
        (landed.target_commit.as_str(), landed.outside),
        (ours.as_str(), change(Some(&ours), Some(&foreign)))
    );
    assert_eq!((world.at("main"), world.at(&kept(&foreign))), (ours, foreign));
    assert_eq!(world.follow().await.outside, []);
}

#[tokio::test]
async fn a_next_that_was_moved_in_a_checkout_is_put_back_under_it() {
    let (world, ours) = waiting().await;
    world.run(&["worktree", "add", "--quiet", "../other", "longhaul/next"]);
    let other = world.root.parent().unwrap().join("other");
    write(&other, "mine.txt", "mine\n");
    let foreign = commit(&other, "Mine");
    assert_eq!(world.follow().await.outside, change(Some(&ours), Some(&foreign)));
    assert_eq!(world.at("longhaul/next"), ours);
    assert_eq!((run(&other, &["rev-parse", "HEAD"]), status(&other)), (foreign, String::new()));
}

#[tokio::test]
async fn a_next_that_was_deleted_is_put_back_unless_the_target_has_it() {
    let (world, ours) = waiting().await;
    world.run(&["update-ref", "-d", "refs/heads/longhaul/next"]);
    assert_eq!(world.follow().await.outside, change(Some(&ours), None));
    assert_eq!(world.at("longhaul/next"), ours);
    world.run(&["checkout", "--quiet", "--", "."]);
    world.run(&["merge", "--quiet", "longhaul/next"]);
    world.run(&["branch", "--quiet", "-d", "longhaul/next"]);
    let landed = world.follow().await;
    assert_eq!((landed.target_commit, landed.outside), (ours, Vec::new()));
}

#[tokio::test]
async fn a_next_that_stands_for_another_branch_is_not_followed() {
    let world = World::new();
    let (tip, commit) = world.candidate("login", "login.txt", "login\n").await;
    world.run(&["branch", "--quiet", "other"]);
    world.run(&["symbolic-ref", "refs/heads/longhaul/next", "refs/heads/other"]);
    world.write("src/a file.txt", "mine\n");
    assert!(world.land((&tip, &commit)).await.unwrap().waits_on_next.is_some());
    assert_eq!((world.at("other"), world.at("longhaul/next")), (tip, commit));
}

#[tokio::test]
async fn a_new_data_directory_takes_what_waits_as_it_is() {
    let (mut world, ours) = waiting().await;
    std::fs::remove_dir_all(world.data()).unwrap();
    world.restart();
    world.run(&["checkout", "--quiet", "--", "."]);
    let landed = world.follow().await;
    assert_eq!((landed.target_commit, landed.outside), (ours, Vec::new()));
}

#[tokio::test]
async fn the_protected_files_of_a_merged_result_are_those_of_the_tip() {
    let world = World::new();
    world.open("login").await;
    let tree = world.tree("login");
    write(&tree, "acceptance/login.sh", "exit 1\n");
    write(&tree, "acceptance/more.sh", "exit 1\n");
    write(&tree, "login.txt", "login\n");
    let unsealed = commit(&tree, "Not sealed");
    world.run(&["fetch", "--quiet", tree.to_str().unwrap(), "HEAD"]);
    let merged = world.merge("login", &unsealed, MergeStyle::Merge).await;
    let Merged::Candidate { commit, files, put_back, .. } = merged else { panic!("{merged:?}") };
    assert_eq!(put_back, ["acceptance/login.sh", "acceptance/more.sh"]);
    assert_eq!(files, ["feature_list.json", "login.txt"]);
    assert_eq!(
        world.run(&["diff", "--name-only", "main", &commit]),
        "feature_list.json\nlogin.txt"
    );
}
