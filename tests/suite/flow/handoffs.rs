//! Handoffs that fail, and what people say meanwhile.

use longhaul_engine::{Engine, MessageBody, Payload, RequestedBy, RunReader};
use longhaul_tests::script::{id, until};
use longhaul_workflows::settings::{AgentSettings, ContextSettings, Driver};

use super::world::{World, feature};

/// The tokens of a full window.
const FULL: u64 = 950;

/// A project whose model fills its window so often.
fn world(windows: usize) -> World {
    let world = World::new(vec![feature("login", "has login")]);
    let context =
        ContextSettings { window: Some(1000), compactions: 0, ..ContextSettings::default() };
    world.state().agent =
        AgentSettings { driver: Driver::Api, context, ..AgentSettings::default() };
    world.state().fill = std::iter::repeat_n(FULL, windows).collect();
    world
}

async fn history(world: &World, run: &str) -> String {
    let events = world.memory.read(&id(run), 0).await.unwrap();
    format!("{events:?}")
}

async fn note(engine: &Engine, text: &str) {
    let note = Payload::of(&text);
    engine.signal(&id("p/login/1"), "note", note).await.unwrap();
}

#[tokio::test]
async fn after_a_failed_handoff_the_next_one_has_a_successor_of_its_own() {
    let world = world(2);
    world.hold("begin_session login 2");
    let engine = world.begin().await;
    world.until_begun("begin_session login 2", 1).await;
    world.clock.advance(601);
    world.until_passes("login").await;
    assert!(!history(&world, "p/login/1/1").await.contains("cancelled"));
    assert!(world.memory.summary(&id("p/login/1/3")).await.unwrap().is_some());
    assert_eq!(world.count("begin_session login 3"), 1);
    world.end(&engine).await;
}

#[tokio::test]
async fn a_note_during_a_handoff_reaches_the_session_at_work() {
    let world = world(1);
    world.hold("begin_session login 2");
    let engine = world.begin().await;
    world.until_begun("begin_session login 2", 1).await;
    note(&engine, "Hurry").await;
    until("the feature has the note", async || {
        history(&world, "p/login/1").await.contains("Hurry")
    })
    .await;
    world.let_go("begin_session login 2");
    world.until_passes("login").await;
    assert!(world.state().heard.iter().any(|text| text == "A person says: Hurry"));
    world.end(&engine).await;
}

#[tokio::test]
async fn a_session_that_ends_while_its_successor_fails_ends_the_try() {
    let world = world(1);
    world.hold("begin_session login 2");
    let engine = world.begin().await;
    world.until_begun("begin_session login 2", 1).await;
    let request = MessageBody::Terminate(RequestedBy::default());
    engine.deliver(&id("p/login/1/1"), request).await.unwrap();
    until("the feature knows that its session has ended", async || {
        history(&world, "p/login/1").await.contains("ChildEnded")
    })
    .await;
    world.clock.advance(601);
    until("the successor is cancelled", async || {
        let successor = world.memory.summary(&id("p/login/1/2")).await.unwrap();
        successor.is_some_and(|summary| summary.status.is_terminal())
    })
    .await;
    world.until_passes("login").await;
    world.end(&engine).await;
}
