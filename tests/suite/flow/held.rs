//! Features that are paused keep neither files nor the repair of the baseline from the others.

use longhaul_engine::{Engine, Payload, RunReader, Status};
use longhaul_tests::script::{id, until};
use longhaul_workflows::backlog::Check;
use longhaul_workflows::project::{HeldRuns, signal};

use super::world::{World, feature};

/// Pauses the run of `login` in its session, which ends then.
async fn pause_in_session(world: &World, engine: &Engine) {
    world.pause(engine, "p/login/1", true).await;
    world.let_go("run_session login");
    let is_paused = async || {
        let summary = world.memory.summary(&id("p/login/1")).await.unwrap().unwrap();
        matches!(summary.status, Status::Paused(_))
    };
    until("it is paused", is_paused).await;
}

async fn until_shop_waits(world: &World, waits_for: &str) {
    until("shop waits for login", async || {
        world
            .view("shop")
            .await
            .and_then(|view| view.waits)
            .is_some_and(|waits| waits.to_string().contains(waits_for))
    })
    .await;
}

/// `shop` waits for `login`, which is paused, until the project knows that; and `login` goes on
/// when it is resumed.
async fn shop_passes_first(world: &World, engine: &Engine, waits_for: &str) {
    until_shop_waits(world, waits_for).await;
    world
        .tell(engine, signal::HELD, Payload::of(&HeldRuns { runs: [id("p/login/1")].into() }))
        .await;
    world.until_passes("shop").await;
    assert!(!world.view("login").await.unwrap().passes);
    world.pause(engine, "p/login/1", false).await;
    world.tell(engine, signal::HELD, Payload::of(&HeldRuns::default())).await;
    world.until_passes("login").await;
}

/// `login` is held in the session that resolves its first conflict, `shop` in its first session;
/// how often each conflicts.
async fn login_resolves(login: u32, shop: u32) -> (World, Engine) {
    let world = World::new(vec![feature("login", "has login"), feature("shop", "has shop")]);
    world.state().shared = [("login".into(), login), ("shop".into(), shop)].into();
    world.hold("run_session shop");
    world.hold("merge_candidate login");
    let engine = world.begin().await;
    world.until_begun("merge_candidate login", 1).await;
    world.hold("run_session login");
    world.let_go("merge_candidate login");
    world.until_begun("run_session login", 2).await;
    (world, engine)
}

async fn lands_past_one_that_resolves(conflicts_of_shop: u32) {
    let (world, engine) = login_resolves(1, conflicts_of_shop).await;
    pause_in_session(&world, &engine).await;
    world.let_go("run_session shop");
    shop_passes_first(&world, &engine, "until login").await;
    assert_eq!(world.target(), ["login", "shop"]);
    world.end(&engine).await;
}

#[tokio::test]
async fn a_paused_feature_keeps_no_files_from_one_that_is_ready() {
    lands_past_one_that_resolves(0).await;
}

#[tokio::test]
async fn a_paused_feature_keeps_no_files_from_one_that_resolves_too() {
    lands_past_one_that_resolves(1).await;
}

#[tokio::test]
async fn a_feature_whose_resolution_does_not_merge_either_goes_before_those_that_wait_for_it() {
    for conflicts_of_shop in [0, 2] {
        let (world, engine) = login_resolves(3, conflicts_of_shop).await;
        world.let_go("run_session shop");
        until_shop_waits(&world, "until login").await;
        world.let_go("run_session login");
        world.until_passes("login").await;
        world.until_passes("shop").await;
        world.end(&engine).await;
    }
}

#[tokio::test]
async fn a_paused_feature_does_not_block_the_baseline_repair() {
    let world = World::new(vec![feature("login", "has login"), feature("shop", "has shop")]);
    world.state().baseline =
        vec![Check { name: "builds".into(), run: "has base".into(), ..Check::default() }];
    world.hold("run_session login");
    world.hold("run_checks shop");
    let engine = world.begin().await;
    world.until_begun("run_session login", 1).await;
    world.let_go("run_checks shop");
    until("shop waits", async || world.view("shop").await.is_some_and(|view| view.waits.is_some()))
        .await;
    pause_in_session(&world, &engine).await;
    shop_passes_first(&world, &engine, "while login repairs").await;
    assert_eq!(world.target(), ["base", "login", "shop"]);
    world.end(&engine).await;
}
