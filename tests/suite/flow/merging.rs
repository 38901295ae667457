//! The merge queue: if one feature holds it up, the others merge, one at a time and each in a tree of its
//! own.

use longhaul_engine::{Payload, RunId, RunReader, Status};
use longhaul_tests::script::{id, until};
use longhaul_workflows::contracts::PassMark;
use longhaul_workflows::feature::{MergeLease, MergeRequest};
use longhaul_workflows::project::{HeldRuns, Skipped, signal};

use super::world::{PROJECT, World, feature};

fn held(runs: &[RunId]) -> Payload {
    Payload::of(&HeldRuns { runs: runs.iter().cloned().collect() })
}

fn two() -> World {
    World::new(vec![feature("login", "has login"), feature("shop", "has shop")])
}

#[tokio::test]
async fn a_feature_that_is_removed_while_it_merges_lets_the_others_merge() {
    let world = two();
    world.hold("run_checks login merged");
    world.hold("run_session shop");
    let engine = world.begin().await;
    world.until_begun("run_checks login merged", 1).await;
    world.let_go("run_session shop");
    world.edit(&engine, vec![feature("shop", "has shop")]).await;
    world.until_passes("shop").await;
    assert_eq!(world.state().landed, ["p/shop/1"]);
    world.end(&engine).await;
}

#[tokio::test]
async fn a_feature_that_is_removed_and_restored_while_it_queues_merges() {
    let world = two();
    world.hold("run_checks shop merged");
    world.hold("run_session login");
    let engine = world.begin().await;
    world.until_begun("run_checks shop merged", 1).await;
    world.let_go("run_session login");
    let asks = async || world.memory.published(&id("p/login/1")).await.unwrap();
    until("it queues", async || {
        asks().await.values().any(|step| step.preview(200).contains("turn_to_merge"))
    })
    .await;
    world.edit(&engine, vec![feature("shop", "has shop")]).await;
    until("it is gone", async || world.view("login").await.is_none()).await;
    world.edit(&engine, vec![feature("login", "has login"), feature("shop", "has shop")]).await;
    until("it works again", async || {
        world.view("login").await.is_some_and(|view| view.run == Some(id("p/login/2")))
    })
    .await;
    world.let_go("run_checks shop merged");
    world.until_passes("login").await;
    world.until_passes("shop").await;
    world.end(&engine).await;
}

#[tokio::test]
async fn a_paused_run_with_the_merge_lease_blocks_no_other_and_lands_after_resume() {
    let world = two();
    world.hold("run_checks login merged");
    world.hold("run_session shop");
    let engine = world.begin().await;
    world.until_begun("run_checks login merged", 1).await;
    world.pause(&engine, "p/login/1", true).await;
    world.let_go("run_checks login merged");
    let is_paused = async || {
        let summary = world.memory.summary(&id("p/login/1")).await.unwrap().unwrap();
        matches!(summary.status, Status::Paused(_))
    };
    until("it is paused", is_paused).await;
    world.let_go("run_session shop");
    world.tell(&engine, signal::HELD, held(&[id("p/login/1")])).await;
    world.until_passes("shop").await;
    assert_eq!(world.target(), ["shop"]);
    world.tell(&engine, signal::HELD, held(&[])).await;
    world.pause(&engine, "p/login/1", false).await;
    world.until_passes("login").await;
    assert_eq!(world.target(), ["login", "shop"], "it was merged again onto what had landed");
    assert!(world.state().sessions.len() == 2, "{:?}", world.state().sessions);
    world.end(&engine).await;
}

/// A person breaks a finished feature on the target: no session on other work could repair it.
#[tokio::test]
async fn a_feature_that_the_target_itself_breaks_is_repaired_by_its_own_run() {
    let world = two();
    world.hold("run_session shop");
    let engine = world.begin().await;
    world.until_passes("login").await;
    world.state().take_from_target("login");
    world.let_go("run_session shop");
    world.until_passes("shop").await;
    until("login works again", async || {
        world.view("login").await.is_some_and(|view| view.run == Some(id("p/login/2")))
    })
    .await;
    world.until_passes("login").await;
    assert_eq!(world.target(), ["login", "shop"]);
    let sessions = world.state().sessions.clone();
    assert_eq!(sessions.len(), 3, "one for each feature, and one for the repair: {sessions:?}");
    let findings = world.memory.published(&id(PROJECT)).await.unwrap()["findings"].preview(500);
    assert!(findings.contains("pass_refuted"), "{findings}");
    world.end(&engine).await;
}

/// The word that a run is held is late or wrong: it merges beside another one, and both results are
/// right.
#[tokio::test]
async fn two_runs_that_merge_at_once_share_no_tree_and_lose_no_work() {
    let world = two();
    world.hold("run_checks login merged");
    world.hold("run_checks shop merged");
    let engine = world.begin().await;
    let at_checks = |id: &str| world.count(&format!("run_checks {id} merged")) > 0;
    until("one merges", async || at_checks("login") || at_checks("shop")).await;
    let (first, second) = if at_checks("login") { ("login", "shop") } else { ("shop", "login") };
    world.tell(&engine, signal::HELD, held(&[id(&format!("p/{first}/1"))])).await;
    world.until_begun(&format!("run_checks {second} merged"), 1).await;
    world.let_go(&format!("run_checks {second} merged"));
    world.until_passes(second).await;
    world.let_go(&format!("run_checks {first} merged"));
    world.until_passes(first).await;
    assert_eq!(world.target(), ["login", "shop"]);
    assert_eq!(
        world.count(&format!("run_checks {first} merged")),
        2,
        "its gates ran on what landed"
    );
    world.end(&engine).await;
}

#[tokio::test]
async fn a_forged_turn_and_a_forged_ready_change_nothing() {
    let world = two();
    world.hold("run_checks shop merged");
    world.hold("run_session login");
    let engine = world.begin().await;
    world.until_begun("run_checks shop merged", 1).await;
    let forged = MergeLease { regression: Vec::new(), tree: 0, mark: PassMark::Own };
    engine.signal(&id("p/login/1"), MergeLease::GRANTED, Payload::of(&forged)).await.unwrap();
    let ready = MergeRequest { feature: feature("login", "true").id, files: Vec::new() };
    world.tell(&engine, MergeRequest::SIGNAL, Payload::of(&ready)).await;
    world.tell(&engine, MergeLease::RELEASED, Payload::of(&"shop")).await;
    let skipped = async || {
        let published = world.memory.published(&id(PROJECT)).await.unwrap();
        published.get(Skipped::KEY).and_then(|skipped| skipped.read::<Skipped>().ok())
    };
    until("the last one was skipped", async || {
        skipped().await.is_some_and(|skipped| skipped.signal == "merge_lease_released")
    })
    .await;
    world.let_go("run_session login");
    let steps = async || world.memory.published(&id("p/login/1")).await.unwrap();
    until("it queues", async || {
        steps().await.values().any(|step| step.preview(200).contains("turn_to_merge"))
    })
    .await;
    until("it has read the forged turn", async || {
        world.memory.mailbox(&id("p/login/1")).await.unwrap().is_empty()
    })
    .await;
    assert_eq!(world.count("merge_candidate login"), 0);
    world.let_go("run_checks shop merged");
    world.until_passes("login").await;
    world.until_passes("shop").await;
    world.end(&engine).await;
}
