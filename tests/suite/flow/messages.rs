//! Messages that cannot be read, and a list that cannot be read yet.

use longhaul_engine::{Failure, Payload, RunReader};
use longhaul_tests::script::{id, until};
use longhaul_workflows::project::{Phase, Skipped, signal};
use serde_json::json;

use super::world::{PROJECT, World, feature};

#[tokio::test]
async fn a_signal_that_cannot_be_read_is_skipped_and_shown() {
    let world = World::new(vec![feature("login", "has login")]);
    let engine = world.begin().await;
    for name in
        [signal::BLOCK, signal::SYNC, signal::HALT, "fork", "rollback", "override", "unheard of"]
    {
        world.tell(&engine, name, Payload::of(&json!([[7]]))).await;
    }
    world.until_passes("login").await;
    let skipped = async || {
        let published = world.memory.published(&id(PROJECT)).await.unwrap();
        published.get(Skipped::KEY).and_then(|skipped| skipped.read::<Skipped>().ok())
    };
    until("the last one was skipped", async || {
        skipped().await.is_some_and(|skipped| skipped.signal == "unheard of")
    })
    .await;
    world.end(&engine).await;
}

#[tokio::test]
async fn a_first_sync_that_fails_is_tried_again_and_nothing_starts_before() {
    let world = World::new(vec![feature("login", "has login")]);
    let failures = (0..6).map(|_| Failure::retryable("no file descriptors are left"));
    world.state().unreadable.extend(failures);
    let engine = world.begin().await;
    // Each sync is four attempts.
    until("the first sync has failed", async || {
        world.clock.advance(1);
        world.memory.published(&id(PROJECT)).await.unwrap().contains_key("project")
            && world.project().await.problem.is_some()
    })
    .await;
    let view = world.project().await;
    assert_eq!((view.phase, view.features, view.target.as_str()), (Phase::Working, 0, ""));
    assert_eq!(view.problem.as_deref(), Some("no file descriptors are left"));
    until("it passes", async || {
        world.clock.advance(1);
        world.view("login").await.is_some_and(|view| view.passes)
    })
    .await;
    let view = world.project().await;
    assert_eq!((view.problem, view.target.as_str()), (None, "main"));
    world.end(&engine).await;
}

#[tokio::test]
async fn a_list_that_is_wrong_is_not_read_again_until_it_is_edited() {
    let world = World::new(vec![feature("login", "has login")]);
    world.state().unreadable.push_back(Failure::terminal("there is no feature list"));
    let engine = world.begin().await;
    until("the sync has failed", async || {
        world.memory.published(&id(PROJECT)).await.unwrap().contains_key("project")
            && world.project().await.problem.is_some()
    })
    .await;
    assert_eq!(world.project().await.phase, Phase::Idle);
    world.tell(&engine, signal::RELOAD, Payload::of(&"edit")).await;
    world.until_passes("login").await;
    assert_eq!(world.project().await.target, "main");
    world.end(&engine).await;
}
