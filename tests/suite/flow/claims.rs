//! A claim passes on the target or not at all.

use longhaul_engine::Payload;
use longhaul_tests::script::until;
use longhaul_workflows::backlog::FeatureStatus;
use longhaul_workflows::project::signal;

use super::world::{World, claimed, feature};

#[tokio::test]
async fn a_claim_that_holds_on_the_target_needs_no_session() {
    let world = World::new(vec![claimed("login", "true"), claimed("logout", "true")]);
    let engine = world.begin().await;
    world.until_passes("login").await;
    world.until_passes("logout").await;
    let commit = world.view("login").await.unwrap().commit;
    assert_eq!(commit.as_ref(), Some(&world.state().target));
    assert!(world.state().sessions.is_empty() && world.state().landed.is_empty());
    world.end(&engine).await;
}

#[tokio::test]
async fn work_on_the_branch_of_a_claimed_feature_lands_before_it_passes() {
    let world = World::new(vec![claimed("login", "has login")]);
    world.state().branch("login", &["login"]);
    world.hold("seal login");
    let engine = world.begin().await;
    world.until_begun("seal login", 1).await;
    assert!(!world.view("login").await.unwrap().passes, "its gates pass on its branch only");
    world.let_go("seal login");
    world.until_passes("login").await;
    assert_eq!(world.target(), ["login"]);
    assert!(world.state().sessions.is_empty(), "the work was there");
    world.end(&engine).await;
}

#[tokio::test]
async fn a_claim_that_does_not_hold_is_worked_on() {
    let world = World::new(vec![claimed("login", "has login")]);
    let engine = world.begin().await;
    world.until_passes("login").await;
    assert_eq!((world.target(), world.state().landed.len()), (vec!["login".to_owned()], 1));
    world.end(&engine).await;
}

#[tokio::test]
async fn a_claim_whose_run_was_cancelled_is_judged_on_the_target_again() {
    let world = World::new(vec![feature("login", "has login")]);
    let engine = world.begin().await;
    world.until_passes("login").await;
    // Edited after it passed, blocked in the session of its second run, and tried again.
    world.hold("run_session login");
    world.edit(&engine, vec![feature("login", "has more")]).await;
    world.until_begun("run_session login", 2).await;
    world.tell(&engine, signal::BLOCK, Payload::of(&("login", "not now"))).await;
    world.until_status("login", FeatureStatus::Blocked).await;
    world.state().branch("login", &["more"]);
    world.hold("land ");
    world.let_go("run_session login");
    world.tell(&engine, signal::UNBLOCK, Payload::of(&"login")).await;
    until("it is about to land", async || world.count("land ") == 2).await;
    assert!(!world.view("login").await.unwrap().passes);
    world.let_go("land ");
    world.until_passes("login").await;
    assert_eq!(world.target(), ["login", "more"]);
    world.end(&engine).await;
}

#[tokio::test]
async fn what_was_blocked_after_it_passed_is_a_claim_when_it_is_unblocked() {
    let world = World::new(vec![feature("login", "has login")]);
    let engine = world.begin().await;
    world.until_passes("login").await;
    world.tell(&engine, signal::BLOCK, Payload::of(&("login", "wait"))).await;
    world.until_status("login", FeatureStatus::Blocked).await;
    world.tell(&engine, signal::UNBLOCK, Payload::of(&"login")).await;
    world.until_passes("login").await;
    assert_eq!(world.state().sessions, ["p/login/1"]);
    world.end(&engine).await;
}
