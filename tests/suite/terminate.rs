//! A run is terminated: nothing of it continues, its workflow is not called, and its history still
//! replays.

use std::sync::Arc;
use std::time::Duration;

use longhaul_engine::{
    Child, ContextExt, Engine, Failure, Filter, Handlers, MessageBody, Options, Outcome, Payload,
    Received, RequestedBy, RunReader, Stop, SystemClock, Workflows, verify,
};
use longhaul_storage::MemoryStore;
use longhaul_tests::script::{
    Counts, Deed, Hands, Step, capitals, done, engine_with, id, new_run, script, shape, until,
};
use tokio::sync::Notify;

/// `tidy` calls a deed and tidies up when it is cancelled; `parent` starts one and says how it
/// ended.
fn workflows() -> Workflows {
    let tidy = script(|context, _| {
        Box::pin(async move {
            if let Err(Stop::Cancelled) = context.call::<Deed>("work".into()).await {
                context.call::<Step>("tidy up".into()).await?;
            }
            done("end")
        })
    });
    let parent = script(|context, _| {
        Box::pin(async move {
            context
                .start(Child {
                    run: id("child"),
                    workflow: "tidy",
                    input: Payload::null(),
                    labels: [].into(),
                })
                .await?;
            match context.receive(&Filter::any(), None).await? {
                Some(Received::ChildEnded { outcome, .. }) => done(format!("{outcome:?}")),
                _ => done("something else"),
            }
        })
    });
    Workflows::new().with("tidy", tidy).with("parent", parent)
}

async fn engine(memory: &MemoryStore, workflows: Workflows, counts: &Counts) -> Engine {
    let lasting = Hands::new(counts, |_, attempt| async move {
        attempt.cancelled().await;
        Err(Failure::cancelled())
    });
    let handlers = Handlers::new().with::<Deed>(lasting).with::<Step>(capitals(counts));
    let options = Options { pools: vec![("deeds".into(), 1)], ..Options::default() };
    engine_with(memory.clone(), workflows, handlers, SystemClock, options).await
}

fn terminate() -> MessageBody {
    MessageBody::Terminate(RequestedBy { by: "ops".into(), why: "enough".into() })
}

#[tokio::test]
async fn terminate_ends_activities_skips_the_workflow_and_notifies_the_parent() {
    let (memory, counts) = (MemoryStore::new(), Counts::default());
    let engine = engine(&memory, workflows(), &counts).await;
    engine.start(new_run("parent", "parent", "")).await.unwrap();
    until("it works", async || counts.of("work") == 1).await;
    assert!(engine.deliver(&id("child"), terminate()).await.unwrap());
    let notified = engine.outcome(&id("parent")).await.unwrap();
    assert_eq!(notified, Outcome::Completed(Payload::of("Cancelled")));
    assert_eq!(shape(&memory, "child").await, ["RunStarted", "ActivityStarted", "RunTerminated"]);
    assert_eq!(counts.of("tidy up"), 0);
    let history = memory.read(&id("child"), 0).await.unwrap();
    assert!(verify(&workflows(), &id("child"), &history).unwrap().is_none());
    assert!(!engine.deliver(&id("child"), terminate()).await.unwrap(), "it is over");
    engine.stop().await;
}

#[tokio::test]
async fn a_run_whose_code_has_diverged_can_be_ended() {
    let (memory, counts) = (MemoryStore::new(), Counts::default());
    let first = engine(&memory, workflows(), &counts).await;
    first.start(new_run("r", "tidy", "")).await.unwrap();
    until("it works", async || counts.of("work") == 1).await;
    first.stop().await;

    let other = script(|context, _| {
        Box::pin(async move {
            context.sleep(Duration::from_hours(1)).await?;
            done("end")
        })
    });
    let second = engine(&memory, Workflows::new().with("tidy", other), &counts).await;
    until("it is stuck", async || second.stuck().contains_key(&id("r"))).await;
    second.deliver(&id("r"), terminate()).await.unwrap();
    until("it is over", async || shape(&memory, "r").await.ends_with(&["RunTerminated".into()]))
        .await;
    until("it is not shown as stuck", async || second.stuck().is_empty()).await;
    second.stop().await;
}

/// Reads numbers from signals; anything else stops it, in every life.
fn strict() -> Workflows {
    let strict = script(|context, _| {
        Box::pin(async move {
            loop {
                if let Some(Received::Signal { payload, .. }) =
                    context.receive(&Filter::any(), None).await?
                {
                    payload.read::<u32>()?;
                }
            }
        })
    });
    Workflows::new().with("strict", strict)
}

#[tokio::test]
async fn orders_do_not_queue_behind_a_message_that_stops_the_workflow() {
    for (order, end) in [
        (terminate(), "RunTerminated"),
        (MessageBody::Cancel(RequestedBy::default()), "RunCancelled"),
    ] {
        let memory = MemoryStore::new();
        let engine = engine(&memory, strict(), &Counts::default()).await;
        engine.start(new_run("r", "strict", "")).await.unwrap();
        for poison in ["a", "b"] {
            engine.signal(&id("r"), "number", Payload::of(poison)).await.unwrap();
            until("it is stuck", async || engine.stuck().contains_key(&id("r"))).await;
        }
        engine.deliver(&id("r"), order).await.unwrap();
        until(end, async || shape(&memory, "r").await.last().map(String::as_str) == Some(end))
            .await;
        engine.stop().await;
    }
}

#[tokio::test]
async fn a_run_that_is_started_again_hears_nothing_of_what_ended_it() {
    let memory = MemoryStore::new();
    let engine = engine(&memory, strict(), &Counts::default()).await;
    engine.start(new_run("r", "strict", "")).await.unwrap();
    engine.signal(&id("r"), "number", Payload::of("poison")).await.unwrap();
    until("it is stuck", async || engine.stuck().contains_key(&id("r"))).await;
    engine.deliver(&id("r"), terminate()).await.unwrap();
    assert_eq!(engine.outcome(&id("r")).await, Ok(Outcome::Cancelled));
    engine.restart(new_run("r", "strict", "")).await.unwrap();
    until("it waits", async || shape(&memory, "r").await.ends_with(&["MessageAwaited".into()]))
        .await;
    assert!(engine.stuck().is_empty());
    engine.stop().await;
}

#[tokio::test]
async fn a_request_that_comes_while_a_run_gets_stuck_is_followed() {
    let memory = MemoryStore::new();
    let (requested, notified) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (reached, go_on) = (Arc::clone(&requested), Arc::clone(&notified));
    let stuck = script(move |_, input| {
        let (reached, go_on) = (Arc::clone(&reached), Arc::clone(&go_on));
        Box::pin(async move {
            reached.notify_one();
            go_on.notified().await;
            input.read::<u32>()?;
            done("end")
        })
    });
    let engine = engine(&memory, Workflows::new().with("stuck", stuck), &Counts::default()).await;
    engine.start(new_run("r", "stuck", "not a number")).await.unwrap();
    requested.notified().await;
    engine.deliver(&id("r"), terminate()).await.unwrap();
    notified.notify_one();
    until("it is over", async || shape(&memory, "r").await == ["RunStarted", "RunTerminated"])
        .await;
    engine.stop().await;
}

#[tokio::test]
async fn a_paused_run_and_a_parked_one_are_ended() {
    let (memory, counts) = (MemoryStore::new(), Counts::default());
    let first = engine(&memory, workflows(), &counts).await;
    first.start(new_run("r", "tidy", "")).await.unwrap();
    until("it works", async || counts.of("work") == 1).await;
    first.stop().await;
    let second = engine(&memory, workflows(), &counts).await;
    until("it is parked", async || shape(&memory, "r").await.ends_with(&["RunParked".into()]))
        .await;
    second.deliver(&id("r"), MessageBody::Pause(RequestedBy::default())).await.unwrap();
    until("it is paused", async || shape(&memory, "r").await.ends_with(&["RunPaused".into()]))
        .await;
    second.deliver(&id("r"), terminate()).await.unwrap();
    assert_eq!(second.outcome(&id("r")).await, Ok(Outcome::Cancelled));
    assert!(shape(&memory, "r").await.ends_with(&["RunPaused".into(), "RunTerminated".into()]));
    second.stop().await;
}

#[tokio::test]
async fn who_is_cancelled_does_not_wait_for_a_place() {
    let (memory, counts) = (MemoryStore::new(), Counts::default());
    let engine = engine(&memory, workflows(), &counts).await;
    for run in ["first", "second"] {
        engine.start(new_run(run, "tidy", "")).await.unwrap();
        until("the first works", async || counts.of("work") == 1).await;
    }
    let cancel = MessageBody::Cancel(RequestedBy::default());
    engine.deliver(&id("second"), cancel).await.unwrap();
    assert_eq!(
        engine.outcome(&id("second")).await.unwrap(),
        Outcome::Completed(Payload::of("end"))
    );
    assert_eq!((counts.of("work"), counts.of("tidy up")), (1, 1));
    engine.stop().await;
}
