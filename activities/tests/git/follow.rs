//! Waiting work lands as soon as the user's checkout allows it.

use crate::support::{LIST, World, status};

/// A world where the login waits because of a user's change.
async fn waiting() -> World {
    let world = World::new();
    let (tip, commit) = world.candidate("login", "login.txt", "login\n").await;
    world.write("src/a file.txt", "mine\n");
    assert!(world.land((&tip, &commit)).await.unwrap().waits_on_next.is_some());
    world
}

#[tokio::test]
async fn a_checkout_that_was_cleaned_follows() {
    let world = waiting().await;
    let next = world.at("longhaul/next");
    assert!(world.follow().await.waits_on_next.is_some(), "not clean yet");
    world.run(&["checkout", "--quiet", "--", "."]);
    let landed = world.follow().await;
    assert_eq!(
        (landed.target_commit.as_str(), landed.waits_on_next.as_deref()),
        (next.as_str(), None)
    );
    assert_eq!(world.at("main"), next);
    assert!(!world.exists("longhaul/next"));
    assert_eq!(world.follow().await, landed);
}

/// No gate has passed on a merge of both, so the target does not move there by itself: only the
/// next feature's gates move it.
async fn joined_by_the_cart(world: &World) {
    let (mine, next) = (world.at("main"), world.at("longhaul/next"));
    let followed = world.follow().await;
    assert!(followed.can_merge);
    let waits = followed.waits_on_next.unwrap();
    assert!(waits.contains("once the gates pass on it"), "{waits}");
    assert_eq!((world.at("main"), world.at("longhaul/next")), (mine.clone(), next.clone()));

    let (tip, cart) = world.candidate("cart", "cart.txt", "cart\n").await;
    assert_eq!(world.run(&["log", "-1", "--format=%P", &tip]), format!("{mine} {next}"));
    assert_eq!(world.land((&tip, &cart)).await.unwrap().waits_on_next, None);
    assert_eq!((world.at("main"), world.exists("longhaul/next")), (cart, false));
}

#[tokio::test]
async fn changes_that_were_committed_are_joined_with_what_waits_by_the_next_feature() {
    let world = waiting().await;
    world.commit("Mine");
    joined_by_the_cart(&world).await;
    assert_eq!(
        (world.read("src/a file.txt").as_str(), world.read("login.txt").as_str()),
        ("mine\n", "login\n")
    );
    assert_eq!(status(&world.root), "");
}

#[tokio::test]
async fn a_committed_list_keeps_the_users_words_and_longhauls_marks() {
    let world = waiting().await;
    let edited = LIST.replace("\"Cart\"", "\"A cart, rather\"").replacen(
        "\"pending\"",
        "\"in_progress\"",
        1,
    );
    world.write("feature_list.json", &edited);
    world.commit("Mine, with the list");
    joined_by_the_cart(&world).await;
    let list = world.read("feature_list.json");
    assert!(list.contains("A cart, rather"), "{list}");
    assert!(list.contains("\"status\": \"completed\",\n      \"passes\": true"), "{list}");
}

#[tokio::test]
async fn what_waits_and_conflicts_is_for_the_user_to_settle() {
    let world = waiting().await;
    world.write("login.txt", "mine\n");
    world.commit("Mine");
    assert!(world.try_open("cart", 1).await.is_ok(), "features can still be worked on");
    let landed = world.follow().await;
    let waits = landed.waits_on_next.unwrap();
    assert!(
        waits.contains("conflict in login.txt; run `git merge longhaul/next` on `main`"),
        "{waits}"
    );
    assert_eq!(landed.target_commit, world.at("main"));
}

#[tokio::test]
async fn a_next_that_the_user_merged_is_gone() {
    let world = waiting().await;
    world.run(&["stash", "--quiet"]);
    world.run(&["merge", "--quiet", "longhaul/next"]);
    assert_eq!(world.follow().await.waits_on_next, None);
    assert!(!world.exists("longhaul/next"));
}

#[tokio::test]
async fn a_next_that_the_user_looks_at_stays() {
    let world = waiting().await;
    world.run(&["stash", "--quiet"]);
    world.run(&["checkout", "--quiet", "longhaul/next"]);
    let next = world.at("longhaul/next");
    assert_eq!(world.follow().await.waits_on_next, None);
    assert_eq!((world.at("main"), world.at("longhaul/next")), (next.clone(), next));
    let (tip, commit) = world.candidate("cart", "cart.txt", "cart\n").await;
    world.land((&tip, &commit)).await.unwrap();
    assert_eq!(world.at("main"), commit);
    assert_eq!(status(&world.root), "");
}
