//! How activities are tried: retries, limits of time and number, unknown outcomes, cancellation.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use longhaul_engine::{
    Attempt, Clock, ContextExt, Engine, EventKind, Failure, Handlers, MessageBody, Options,
    Outcome, Payload, Probe, RequestedBy, RunReader, Status, Stop, Workflows, verify,
};
use longhaul_storage::MemoryStore;
use longhaul_tests::clock::HeldClock;
use longhaul_tests::script::{
    Counts, Deed, Hands, Step, done, engine_with, id, new_run, script, shape, until,
};
use tokio::sync::{Barrier, Notify};

/// One call of `Step` or `Deed`, and what it gave.
fn workflows() -> Workflows {
    let step = script(|context, input| {
        Box::pin(async move {
            match context.call::<Step>(input.read()?).await {
                Err(Stop::Failed(failure)) => done(format!("failed: {failure}")),
                output => done(output?),
            }
        })
    });
    let deed = script(|context, input| {
        Box::pin(async move {
            match context.call::<Deed>(input.read()?).await {
                Err(Stop::Failed(failure)) => done(format!("failed: {failure}")),
                Err(Stop::Cancelled) => {
                    let tidy = context.call::<Step>("tidy".into()).await?;
                    context.set("tidied", &tidy).await?;
                    Err(Stop::Cancelled)
                }
                output => done(output?),
            }
        })
    });
    Workflows::new().with("step", step).with("deed", deed)
}

struct World {
    engine: Engine,
    memory: MemoryStore,
    clock: HeldClock,
}

async fn world(memory: MemoryStore, handlers: Handlers) -> World {
    let clock = HeldClock::default();
    let options = Options { pools: vec![("deeds".into(), 2)], ..Options::default() };
    let engine = engine_with(memory.clone(), workflows(), handlers, clock.clone(), options).await;
    World { engine, memory, clock }
}

impl World {
    /// Another engine on the same log.
    async fn reopened(&self, handlers: Handlers) -> Engine {
        let options = Options { pools: vec![("deeds".into(), 2)], ..Options::default() };
        engine_with(self.memory.clone(), workflows(), handlers, self.clock.clone(), options).await
    }

    async fn start(&self, run: &str, workflow: &str) {
        self.engine.start(new_run(run, workflow, run)).await.unwrap();
    }

    async fn result(&self, run: &str) -> String {
        match self.engine.outcome(&id(run)).await.unwrap() {
            Outcome::Completed(output) => output.read().unwrap(),
            other => format!("{other:?}"),
        }
    }

    async fn events(&self, run: &str, count: usize) {
        until("the history grows", async || shape(&self.memory, run).await.len() >= count).await;
    }
}

fn fails_until(attempt: u32, failure: impl Fn(u32) -> Failure + Send + Sync + 'static) -> Handlers {
    let failure = Arc::new(failure);
    Handlers::new().with::<Step>(Hands::new(&Counts::default(), move |input, this| {
        let failure = Arc::clone(&failure);
        async move {
            if this.number < attempt {
                Err(failure(this.number))
            } else {
                Ok(format!("{input} at {}", this.number))
            }
        }
    }))
}

#[tokio::test]
async fn a_retryable_failure_is_tried_again_when_its_time_has_come() {
    let world =
        world(MemoryStore::new(), fails_until(3, |n| Failure::retryable(format!("no {n}")))).await;
    world.start("r", "step").await;
    world.events("r", 2).await;
    let summary = world.memory.summary(&id("r")).await.unwrap().unwrap();
    let due = world.clock.now() + chrono::Duration::seconds(1);
    assert_eq!(summary.status, Status::Waiting { until: Some(due), machine: None });
    world.clock.advance(1);
    world.events("r", 3).await;
    world.clock.advance(1);
    assert_eq!(world.result("r").await, "r at 3");
    world.engine.stop().await;
}

/// Fails so often for want of the machine, then answers with the number of its attempt.
fn machine_fails(times: u32, counts: &Counts) -> Handlers {
    let counts = counts.clone();
    let seen = counts.clone();
    let act = move |input: String, this: Attempt| {
        let failures = seen.of(&input);
        async move {
            if failures <= times {
                Err(Failure::machine("disk full on /r"))
            } else {
                Ok(format!("attempt {}", this.number))
            }
        }
    };
    let deed = Hands::<Deed>::new(&counts, act.clone()).probed(|_| Probe::NotHappened);
    Handlers::new().with::<Step>(Hands::new(&counts, act)).with::<Deed>(deed)
}

#[tokio::test]
async fn failures_of_the_machine_have_delays_of_their_own_and_cost_no_attempt() {
    for workflow in ["step", "deed"] {
        let counts = Counts::default();
        let handlers = || machine_fails(9, &counts);
        let mut world = world(MemoryStore::new(), handlers()).await;
        world.start("r", workflow).await;
        for (failed, delay) in (1..).zip([1, 2, 4, 8, 16, 32, 60, 60, 60]) {
            let due = world.clock.now() + chrono::Duration::seconds(delay);
            let waiting =
                Status::Waiting { until: Some(due), machine: Some("disk full on /r".into()) };
            until("it waits", async || {
                world.memory.summary(&id("r")).await.unwrap().unwrap().status == waiting
            })
            .await;
            assert_eq!(counts.of("r"), failed, "{workflow}");
            if failed == 3 {
                // Another process tries at once, and goes on with the delays.
                world.engine.stop().await;
                world = World { engine: world.reopened(handlers()).await, ..world };
                continue;
            }
            world.clock.advance(delay - 1);
            assert_eq!(counts.of("r"), failed, "it is not due yet");
            world.clock.advance(1);
        }
        assert_eq!(world.result("r").await, "attempt 1", "{workflow}");
        world.engine.stop().await;
    }
}

#[tokio::test]
async fn a_probe_that_the_machine_fails_is_made_again_and_parks_nothing() {
    let world = world(
        MemoryStore::new(),
        Handlers::new().with::<Deed>(Hands::<Deed>::new(
            &Counts::default(),
            |_, this| async move {
                this.cancelled().await;
                Err(Failure::cancelled())
            },
        )),
    )
    .await;
    world.start("r", "deed").await;
    world.events("r", 2).await;
    world.engine.stop().await;
    let (counts, probes) = (Counts::default(), Counts::default());
    let asked = probes.clone();
    let probe = move |_| {
        asked.add("r");
        if asked.of("r") < 3 {
            Probe::Machine("no file descriptors left".into())
        } else {
            Probe::NotHappened
        }
    };
    let deed =
        Hands::<Deed>::new(
            &counts,
            |_, this| async move { Ok(format!("attempt {}", this.number)) },
        )
        .probed(probe);
    let world = World { engine: world.reopened(Handlers::new().with::<Deed>(deed)).await, ..world };
    for (asked, delay) in [(1, 1), (2, 2)] {
        world.events("r", 2 + asked as usize).await;
        assert_eq!((probes.of("r"), counts.of("r")), (asked, 0));
        let status = world.memory.summary(&id("r")).await.unwrap().unwrap().status;
        assert!(matches!(status, Status::Waiting { machine: Some(_), .. }), "{status:?}");
        world.clock.advance(delay);
    }
    assert_eq!(world.result("r").await, "attempt 2", "the one that was cut was the first");
    world.engine.stop().await;
}

#[tokio::test]
async fn a_run_that_waits_for_the_machine_can_be_cancelled() {
    let world = world(MemoryStore::new(), machine_fails(99, &Counts::default())).await;
    world.start("r", "step").await;
    world.events("r", 2).await;
    world.engine.deliver(&id("r"), MessageBody::Cancel(RequestedBy::default())).await.unwrap();
    assert_eq!(world.engine.outcome(&id("r")).await, Ok(Outcome::Cancelled));
    world.engine.stop().await;
}

#[tokio::test]
async fn the_last_attempt_is_the_last_and_a_terminal_failure_the_first() {
    let world =
        world(MemoryStore::new(), fails_until(99, |n| Failure::retryable(format!("no {n}")))).await;
    world.start("r", "step").await;
    for events in 2..6 {
        world.events("r", events).await;
        world.clock.advance(1);
    }
    assert_eq!(world.result("r").await, "failed: no 5");
    world.engine.stop().await;

    let world =
        self::world(MemoryStore::new(), fails_until(99, |_| Failure::terminal("never"))).await;
    world.start("r", "step").await;
    assert_eq!(world.result("r").await, "failed: never");
    world.engine.stop().await;
}

#[tokio::test]
async fn a_rate_limit_waits_for_its_time_and_costs_no_attempt() {
    let reset = HeldClock::default().now() + chrono::Duration::hours(5);
    let world = world(
        MemoryStore::new(),
        fails_until(9, move |_| Failure::rate_limited(reset, "5-hour limit")),
    )
    .await;
    world.start("r", "step").await;
    world.events("r", 2).await;
    let summary = world.memory.summary(&id("r")).await.unwrap().unwrap();
    assert_eq!(summary.status, Status::Waiting { until: Some(reset), machine: None });
    world.clock.advance(5 * 3600);
    assert_eq!(
        world.result("r").await,
        "r at 9",
        "eight refusals used up none of the five attempts"
    );
    world.engine.stop().await;
}

/// Runs a deed in a first life that ends while it is under way, then asks a second life.
async fn unknown(answer: Probe<String>) -> (World, Counts) {
    let memory = MemoryStore::new();
    let started = Arc::new(Notify::new());
    let begun = Arc::clone(&started);
    let hanging = Hands::<Deed>::new(&Counts::default(), move |_, attempt| {
        begun.notify_one();
        async move {
            attempt.cancelled().await;
            Err(Failure::cancelled())
        }
    });
    let first = world(memory.clone(), Handlers::new().with::<Deed>(hanging)).await;
    first.start("r", "deed").await;
    started.notified().await;
    first.engine.stop().await;
    assert_eq!(
        shape(&memory, "r").await,
        ["RunStarted", "ActivityStarted"],
        "a stop is no failure"
    );

    let counts = Counts::default();
    let hands = Hands::<Deed>::new(&counts, |input, attempt| async move {
        Ok(format!("{input} at {}", attempt.number))
    });
    let hands = hands.probed(move |_| answer.clone());
    (world(memory, Handlers::new().with::<Deed>(hands)).await, counts)
}

#[tokio::test]
async fn an_unknown_outcome_is_probed() {
    let (world, counts) = unknown(Probe::Happened("it is there".into())).await;
    assert_eq!(world.result("r").await, "it is there");
    assert_eq!(counts.of("r"), 0, "it is not done again");
    world.engine.stop().await;

    let (world, counts) = unknown(Probe::NotHappened).await;
    assert_eq!(world.result("r").await, "r at 2");
    assert_eq!(counts.of("r"), 1);
    world.engine.stop().await;
}

#[tokio::test]
async fn an_effect_without_a_probe_waits_for_a_person() {
    for (happened, expected) in [(true, "by hand"), (false, "r at 2")] {
        let (world, counts) = unknown(Probe::Unknown("no trace".into())).await;
        let parked = async || world.memory.summary(&id("r")).await.unwrap().unwrap().status;
        until("it is parked", async || matches!(parked().await, Status::Parked(_))).await;
        let Status::Parked(effect) = parked().await else { panic!("it is parked") };
        assert_eq!(
            effect.to_string(),
            "it is unknown whether `deed` (attempt 1) happened: no trace"
        );
        assert_eq!(counts.of("r"), 0, "it is not done again unasked");
        let output = if happened { Payload::of("by hand") } else { Payload::null() };
        let request = RequestedBy { by: "ops".into(), why: "looked".into() };
        world
            .engine
            .deliver(&id("r"), MessageBody::Reconcile { happened, output, request })
            .await
            .unwrap();
        assert_eq!(world.result("r").await, expected);
        world.engine.stop().await;
    }
}

#[tokio::test]
async fn too_long_and_too_silent_attempts_end() {
    for (beats, seconds, expected) in
        [(false, 10, "no sign of life for 10s"), (true, 60, "timed out after 60s")]
    {
        let ended = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&ended);
        let hanging = Hands::<Deed>::new(&Counts::default(), move |_, attempt| {
            let count = Arc::clone(&count);
            async move {
                if attempt.number > 1 {
                    return Ok("second".into());
                }
                while !attempt.is_cancelled() {
                    if beats {
                        attempt.heartbeat();
                    }
                    tokio::time::sleep(std::time::Duration::from_millis(1)).await;
                }
                count.fetch_add(1, Ordering::SeqCst);
                Err(Failure::cancelled())
            }
        });
        let world = world(MemoryStore::new(), Handlers::new().with::<Deed>(hanging)).await;
        world.start("r", "deed").await;
        world.events("r", 2).await;
        // In steps that are smaller than the silence that is allowed, with time for a heartbeat
        // between them.
        for _ in 0..(seconds / 5) {
            tokio::time::sleep(std::time::Duration::from_millis(30)).await;
            world.clock.advance(5);
        }
        world.events("r", 3).await;
        let events = world.memory.read(&id("r"), 0).await.unwrap();
        let EventKind::ActivityFailed { failure, retry_at: Some(_), .. } = &events[2].kind else {
            panic!("{events:?}")
        };
        assert_eq!(failure.message, expected);
        assert_eq!(ended.load(Ordering::SeqCst), 1, "the handler was told, and ended");
        world.clock.advance(1);
        assert_eq!(world.result("r").await, "second");
        world.engine.stop().await;
    }
}

#[tokio::test]
async fn a_pool_limits_how_many_run_at_once() {
    let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (now, peak, pairs) = (Arc::clone(&running), Arc::clone(&most), Arc::new(Barrier::new(2)));
    let hands = Hands::<Deed>::new(&Counts::default(), move |input, _| {
        let (now, peak, pairs) = (Arc::clone(&now), Arc::clone(&peak), Arc::clone(&pairs));
        async move {
            peak.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            pairs.wait().await;
            now.fetch_sub(1, Ordering::SeqCst);
            Ok(input)
        }
    });
    let world = world(MemoryStore::new(), Handlers::new().with::<Deed>(hands)).await;
    for run in ["a", "b", "c", "d", "e", "f"] {
        world.start(run, "deed").await;
    }
    for run in ["a", "b", "c", "d", "e", "f"] {
        assert_eq!(world.result(run).await, run);
    }
    assert_eq!(most.load(Ordering::SeqCst), 2);
    world.engine.stop().await;
}

#[tokio::test]
async fn cancellation_reaches_the_handler_then_the_workflow_tidies_up() {
    let started = Arc::new(Notify::new());
    let begun = Arc::clone(&started);
    let hanging = Hands::<Deed>::new(&Counts::default(), move |_, attempt| {
        begun.notify_one();
        async move {
            attempt.cancelled().await;
            Err(Failure::cancelled())
        }
    });
    let (tidying, proceed) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (tidies, may_proceed) = (Arc::clone(&tidying), Arc::clone(&proceed));
    let steps = Hands::<Step>::new(&Counts::default(), move |input, attempt| {
        tidies.notify_one();
        let may_proceed = Arc::clone(&may_proceed);
        async move {
            tokio::select! {
                () = may_proceed.notified() => Ok(input),
                () = attempt.cancelled() => Err(Failure::cancelled()),
            }
        }
    });
    let world =
        world(MemoryStore::new(), Handlers::new().with::<Deed>(hanging).with::<Step>(steps)).await;
    world.start("r", "deed").await;
    started.notified().await;
    let request = RequestedBy { by: "ops".into(), why: "too dear".into() };
    world.engine.deliver(&id("r"), MessageBody::Cancel(request.clone())).await.unwrap();
    tidying.notified().await;
    // It counts once: the second one does not disturb the end of the work.
    let again = RequestedBy { by: "bob".into(), why: String::new() };
    world.engine.deliver(&id("r"), MessageBody::Cancel(again)).await.unwrap();
    proceed.notify_one();
    assert_eq!(world.result("r").await, "Cancelled");
    let events = world.memory.read(&id("r"), 0).await.unwrap();
    let EventKind::CancelDelivered { request: recorded, .. } = &events[2].kind else {
        panic!("{events:?}")
    };
    assert_eq!(*recorded, request, "who asked, and why, is in the history");
    assert_eq!(world.memory.published(&id("r")).await.unwrap()["tidied"], Payload::of("tidy"));
    world.engine.stop().await;
}

#[tokio::test]
async fn a_call_that_fails_for_good_while_it_is_cancelled_is_cancelled_also_on_replay() {
    let started = Arc::new(Notify::new());
    let begun = Arc::clone(&started);
    let failing = Hands::<Deed>::new(&Counts::default(), move |_, attempt| {
        begun.notify_one();
        async move {
            attempt.cancelled().await;
            Err(Failure::terminal("too late"))
        }
    });
    let steps = Hands::<Step>::new(&Counts::default(), |input, _| async move { Ok(input) });
    let handlers = Handlers::new().with::<Deed>(failing).with::<Step>(steps);
    let world = world(MemoryStore::new(), handlers).await;
    world.start("r", "deed").await;
    started.notified().await;
    world.engine.deliver(&id("r"), MessageBody::Cancel(RequestedBy::default())).await.unwrap();
    assert_eq!(world.result("r").await, "Cancelled");
    let history = world.memory.read(&id("r"), 0).await.unwrap();
    assert!(matches!(history[2].kind, EventKind::ActivityFailed { retry_at: None, .. }));
    assert!(matches!(history[3].kind, EventKind::CancelDelivered { .. }));
    assert_eq!(verify(&workflows(), &id("r"), &history).unwrap(), None);
    world.engine.stop().await;
}

#[tokio::test]
async fn progress_is_given_to_the_next_attempt() {
    let memory = MemoryStore::new();
    let hands = || {
        Hands::<Deed>::new(&Counts::default(), |_, attempt| async move {
            if let Some(progress) = attempt.last_progress {
                return Ok(format!("went on from {}", progress.read::<String>().unwrap()));
            }
            attempt.record_progress(Payload::of("page 7"));
            attempt.cancelled().await;
            Err(Failure::cancelled())
        })
        .probed(|_| Probe::NotHappened)
    };
    let first = world(memory.clone(), Handlers::new().with::<Deed>(hands())).await;
    first.start("r", "deed").await;
    first.events("r", 3).await;
    first.engine.stop().await;
    let second = world(memory, Handlers::new().with::<Deed>(hands())).await;
    assert_eq!(second.result("r").await, "went on from page 7");
    second.engine.stop().await;
}
