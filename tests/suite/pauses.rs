//! A pause holds back every attempt that has not begun in this life, and lets one that runs come to
//! its end.

use std::sync::Arc;
use std::time::Duration;

use longhaul_engine::{
    ContextExt, Engine, EventLog, Failure, Filter, Handlers, MessageBody, Options, Outcome,
    Payload, Probe, RequestedBy, RunReader, Status, Stop, Workflows, verify,
};
use longhaul_storage::MemoryStore;
use longhaul_tests::clock::HeldClock;
use longhaul_tests::script::{
    Counts, Deed, Hands, Step, done, engine_with, id, new_run, script, until,
};
use tokio::sync::Notify;

async fn engine(memory: &MemoryStore, handlers: Handlers, clock: &HeldClock) -> Engine {
    let deed = script(|context, input| {
        Box::pin(async move { done(context.call::<Deed>(input.read()?).await?) })
    });
    let step = script(|context, input| {
        Box::pin(async move { done(context.call::<Step>(input.read()?).await?) })
    });
    let tidy = script(|context, input| {
        Box::pin(async move {
            let Err(Stop::Cancelled) = context.call::<Deed>(input.read()?).await else {
                return done("not cancelled");
            };
            context.now().await?;
            done("tidied up")
        })
    });
    let workflows = Workflows::new().with("deed", deed).with("step", step).with("tidy", tidy);
    let options = Options { pools: vec![("deeds".into(), 1)], ..Options::default() };
    engine_with(memory.clone(), workflows, handlers, clock.clone(), options).await
}

async fn status_is(memory: &MemoryStore, run: &str, wanted: fn(&Status) -> bool) {
    until("the status changes", async || {
        memory.summary(&id(run)).await.unwrap().is_some_and(|summary| wanted(&summary.status))
    })
    .await;
}

fn is_paused(status: &Status) -> bool {
    matches!(status, Status::Paused(_))
}

async fn ends_well(engine: &Engine, run: &str) {
    engine.deliver(&id(run), MessageBody::Resume(RequestedBy::default())).await.unwrap();
    assert!(matches!(engine.outcome(&id(run)).await.unwrap(), Outcome::Completed(_)));
    engine.stop().await;
}

fn answers(counts: &Counts) -> Handlers {
    let deed = Hands::<Deed>::new(counts, |input, _| async move { Ok(input) });
    Handlers::new().with::<Deed>(deed.probed(|_| Probe::NotHappened))
}

#[tokio::test]
async fn a_deed_that_was_cut_is_not_begun_again_by_a_run_that_is_to_pause() {
    let (memory, clock) = (MemoryStore::new(), HeldClock::default());
    let begun = Arc::new(Notify::new());
    let started = Arc::clone(&begun);
    let hanging = Hands::<Deed>::new(&Counts::default(), move |_, attempt| {
        started.notify_one();
        async move {
            attempt.cancelled().await;
            Err(Failure::cancelled())
        }
    });
    let first = engine(&memory, Handlers::new().with::<Deed>(hanging), &clock).await;
    first.start(new_run("r", "deed", "r")).await.unwrap();
    begun.notified().await;
    first.stop().await;

    let delivery = longhaul_engine::store::Delivery {
        to: id("r"),
        at: chrono::DateTime::UNIX_EPOCH,
        body: MessageBody::Pause(RequestedBy::default()),
    };
    memory.deliver(delivery).await.unwrap();
    let counts = Counts::default();
    let second = engine(&memory, answers(&counts), &clock).await;
    status_is(&memory, "r", is_paused).await;
    second.stop().await;
    // Nor by one that is paused already.
    let third = engine(&memory, answers(&counts), &clock).await;
    third.signal(&id("r"), "note", longhaul_engine::Payload::null()).await.unwrap();
    until("it came into memory", async || third.resident_runs() == 1).await;
    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    assert_eq!(counts.of("r"), 0);
    ends_well(&third, "r").await;
    assert_eq!(counts.of("r"), 1);
}

/// A run whose deed was cut by the end of its engine: its outcome is not recorded.
async fn cut_deed(memory: &MemoryStore, workflow: &str, clock: &HeldClock) {
    let begun = Arc::new(Notify::new());
    let started = Arc::clone(&begun);
    let hanging = Hands::<Deed>::new(&Counts::default(), move |_, attempt| {
        started.notify_one();
        async move {
            attempt.cancelled().await;
            Err(Failure::cancelled())
        }
    });
    let engine = engine(memory, Handlers::new().with::<Deed>(hanging), clock).await;
    engine.start(new_run("r", workflow, "r")).await.unwrap();
    begun.notified().await;
    engine.stop().await;
}

#[tokio::test]
async fn a_pause_of_a_parked_run_outlives_the_word_on_its_effect_and_two_deaths() {
    let (memory, clock) = (MemoryStore::new(), HeldClock::default());
    cut_deed(&memory, "deed", &clock).await;
    let counts = Counts::default();
    let blind = || {
        Handlers::new()
            .with::<Deed>(Hands::<Deed>::new(&counts, |input, _| async move { Ok(input) }))
    };
    let parked = engine(&memory, blind(), &clock).await;
    status_is(&memory, "r", |status| matches!(status, Status::Parked(_))).await;
    parked.deliver(&id("r"), MessageBody::Pause(RequestedBy::default())).await.unwrap();
    status_is(&memory, "r", is_paused).await;
    let settled = MessageBody::Reconcile {
        happened: false,
        output: Payload::null(),
        request: RequestedBy::default(),
    };
    parked.deliver(&id("r"), settled).await.unwrap();
    until("the word is taken", async || memory.mailbox(&id("r")).await.unwrap().is_empty()).await;
    parked.stop().await;
    for _ in 0..2 {
        let engine = engine(&memory, blind(), &clock).await;
        engine.signal(&id("r"), "note", longhaul_engine::Payload::null()).await.unwrap();
        until("it came into memory", async || engine.resident_runs() == 1).await;
        until("it left the mail alone", async || {
            !memory.mailbox(&id("r")).await.unwrap().is_empty()
        })
        .await;
        assert!(is_paused(&memory.summary(&id("r")).await.unwrap().unwrap().status));
        engine.stop().await;
    }
    assert_eq!(counts.of("r"), 0, "it is paused");
    let last = engine(&memory, blind(), &clock).await;
    ends_well(&last, "r").await;
    assert_eq!(counts.of("r"), 1);
}

#[tokio::test]
async fn a_paused_run_that_is_cancelled_in_its_next_life_tidies_up() {
    let (memory, clock) = (MemoryStore::new(), HeldClock::default());
    cut_deed(&memory, "tidy", &clock).await;
    let counts = Counts::default();
    let first = engine(&memory, answers(&counts), &clock).await;
    first.deliver(&id("r"), MessageBody::Pause(RequestedBy::default())).await.unwrap();
    status_is(&memory, "r", is_paused).await;
    first.stop().await;
    let second = engine(&memory, answers(&counts), &clock).await;
    second.deliver(&id("r"), MessageBody::Cancel(RequestedBy::default())).await.unwrap();
    let outcome = second.outcome(&id("r")).await.unwrap();
    assert_eq!(outcome, Outcome::Completed(longhaul_engine::Payload::of("tidied up")));
    second.stop().await;
}

#[tokio::test]
async fn an_attempt_that_is_due_again_waits_for_the_end_of_the_pause() {
    let (memory, clock) = (MemoryStore::new(), HeldClock::default());
    let counts = Counts::default();
    let handler = Hands::<Step>::new(&counts, |input, attempt| async move {
        if attempt.number < 2 { Err(Failure::retryable("no")) } else { Ok(input) }
    });
    let engine = engine(&memory, Handlers::new().with::<Step>(handler), &clock).await;
    engine.start(new_run("r", "step", "r")).await.unwrap();
    status_is(&memory, "r", |status| matches!(status, Status::Waiting { .. })).await;
    engine.deliver(&id("r"), MessageBody::Pause(RequestedBy::default())).await.unwrap();
    status_is(&memory, "r", is_paused).await;
    clock.advance(5);
    tokio::task::yield_now().await;
    assert_eq!(counts.of("r"), 1);
    ends_well(&engine, "r").await;
    assert_eq!(counts.of("r"), 2);
}

#[tokio::test]
async fn what_waits_for_a_place_is_called_back_and_what_runs_ends() {
    let (memory, clock) = (MemoryStore::new(), HeldClock::default());
    let counts = Counts::default();
    let (begun, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (started, wait) = (Arc::clone(&begun), Arc::clone(&go));
    let handler = Hands::<Deed>::new(&counts, move |input, _| {
        let (started, wait) = (Arc::clone(&started), Arc::clone(&wait));
        async move {
            started.notify_one();
            wait.notified().await;
            Ok(input)
        }
    });
    let engine = engine(&memory, Handlers::new().with::<Deed>(handler), &clock).await;
    engine.start(new_run("first", "deed", "first")).await.unwrap();
    begun.notified().await;
    engine.start(new_run("second", "deed", "second")).await.unwrap();
    until("both are in memory", async || engine.resident_runs() == 2).await;
    for run in ["first", "second"] {
        engine.deliver(&id(run), MessageBody::Pause(RequestedBy::default())).await.unwrap();
    }
    status_is(&memory, "second", is_paused).await;
    assert!(!is_paused(&memory.summary(&id("first")).await.unwrap().unwrap().status));
    go.notify_one();
    assert!(
        matches!(engine.outcome(&id("first")).await.unwrap(), Outcome::Completed(_)),
        "nothing comes after it"
    );
    assert_eq!(counts.of("second"), 0);
    go.notify_one();
    ends_well(&engine, "second").await;
}

#[tokio::test]
async fn a_resumed_run_waits_as_before_its_pause() {
    let listens = || {
        script(|context, _| {
            Box::pin(async move {
                context.sleep(Duration::from_secs(5)).await?;
                context.receive(&Filter::any(), None).await?;
                done("heard")
            })
        })
    };
    let workflows = || Workflows::new().with("listens", listens());
    let (memory, clock) = (MemoryStore::new(), HeldClock::default());
    let (options, handlers) = (Options::default(), Handlers::new());
    let engine = engine_with(memory.clone(), workflows(), handlers, clock.clone(), options).await;
    engine.start(new_run("r", "listens", "")).await.unwrap();
    let is_asleep = |status: &Status| matches!(status, Status::Waiting { until: Some(_), .. });
    let is_listening = |status: &Status| matches!(status, Status::Waiting { until: None, .. });
    for is_waiting in [is_asleep, is_listening] {
        status_is(&memory, "r", is_waiting).await;
        engine.deliver(&id("r"), MessageBody::Pause(RequestedBy::default())).await.unwrap();
        status_is(&memory, "r", is_paused).await;
        for _ in 0..2 {
            let resume = MessageBody::Resume(RequestedBy::default());
            engine.deliver(&id("r"), resume).await.unwrap();
            until("it is resumed", async || memory.mailbox(&id("r")).await.unwrap().is_empty())
                .await;
            status_is(&memory, "r", is_waiting).await;
        }
        clock.advance(5);
    }
    engine.signal(&id("r"), "note", Payload::null()).await.unwrap();
    assert_eq!(engine.outcome(&id("r")).await, Ok(Outcome::Completed(Payload::of("heard"))));
    engine.stop().await;
    let history = memory.read(&id("r"), 0).await.unwrap();
    assert!(verify(&workflows(), &id("r"), &history).unwrap().is_none());
}
