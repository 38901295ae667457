//! How runs live together: messages, timers, children, pauses, memory.

use std::sync::Arc;
use std::time::Duration;

use longhaul_engine::store::Commit;
use longhaul_engine::{
    Child, ContextExt, Ending, EventLog, Filter, Handlers, MessageBody, Options, Outcome, Payload,
    Received, RequestedBy, RunReader, Started, Status, StoreError, SystemClock, Workflows,
};
use longhaul_storage::MemoryStore;
use longhaul_tests::clock::HeldClock;
use longhaul_tests::dying::DyingStore;
use longhaul_tests::script::{
    Counts, Step, capitals, done, engine_with, id, new_run, script, shape, until,
};
use longhaul_tests::wait::PATIENCE;

fn workflows() -> Workflows {
    let listener = script(|context, input| {
        Box::pin(async move {
            let seconds: String = input.read()?;
            let timeout = seconds.parse().ok().map(Duration::from_secs);
            match context.receive(&Filter::any(), timeout).await? {
                Some(Received::Signal { name, payload, .. }) => {
                    done(format!("{name} {}", payload.read::<String>()?))
                }
                Some(Received::ChildEnded { .. }) => done("a child"),
                None => done("nothing came"),
            }
        })
    });
    let sleeper = script(|context, _| {
        Box::pin(async move {
            let before = context.now().await?;
            context.sleep(Duration::from_hours(1)).await?;
            let after = context.now().await?;
            done(format!("slept {} s", (after - before).num_seconds()))
        })
    });
    let counter = script(|context, input| {
        Box::pin(async move {
            let count: String = input.read()?;
            let count: u32 = count.parse().unwrap_or(0);
            context.call::<Step>(format!("segment {count}")).await?;
            if count < 3 {
                return Ok(Ending::ContinueAsNew(Payload::of(&(count + 1).to_string())));
            }
            done("three")
        })
    });
    let parent = script(|context, input| {
        Box::pin(async move {
            let child = Child {
                run: id("child"),
                workflow: "counter",
                input: Payload::of("3"),
                labels: [].into(),
            };
            context.start(child.clone()).await?;
            context.start(child).await?;
            let Some(Received::ChildEnded { run, outcome }) =
                context.receive(&Filter::any(), None).await?
            else {
                return done("no child");
            };
            let output: String = input.read()?;
            done(format!("{output}: {run} {}", matches!(outcome, Outcome::Completed(_))))
        })
    });
    let asker = script(|context, _| {
        Box::pin(async move {
            context.signal(id("p"), "ready", &"child").await?;
            match context.receive(&Filter::any(), None).await? {
                Some(Received::Signal { name, .. }) => done(name),
                _ => done("no answer"),
            }
        })
    });
    let grantor = script(|context, input| {
        Box::pin(async move {
            let answers: String = input.read()?;
            let child = Child {
                run: id("child"),
                workflow: "asker",
                input: Payload::of(""),
                labels: [].into(),
            };
            context.start(child).await?;
            let mut heard = Vec::new();
            loop {
                match context.receive(&Filter::any(), None).await? {
                    Some(Received::Signal { name, .. }) if answers == "yes" => {
                        heard.push(name);
                        context.signal(id("child"), "turn", &"").await?;
                    }
                    Some(Received::ChildEnded { .. }) => return done(heard.join(" ")),
                    _ => {}
                }
            }
        })
    });
    Workflows::new()
        .with("listener", listener)
        .with("asker", asker)
        .with("grantor", grantor)
        .with("sleeper", sleeper)
        .with("counter", counter)
        .with("parent", parent)
}

struct World {
    engine: longhaul_engine::Engine,
    memory: MemoryStore,
    clock: HeldClock,
    counts: Counts,
}

async fn world(memory: MemoryStore, clock: HeldClock, resident_waiting: usize) -> World {
    let counts = Counts::default();
    let handlers = Handlers::new().with::<Step>(capitals(&counts));
    let options = Options { resident_waiting, ..Options::default() };
    let engine = engine_with(memory.clone(), workflows(), handlers, clock.clone(), options).await;
    World { engine, memory, clock, counts }
}

impl World {
    async fn new() -> Self {
        world(MemoryStore::new(), HeldClock::default(), 100).await
    }

    async fn result(&self, run: &str) -> String {
        match self.engine.outcome(&id(run)).await.unwrap() {
            Outcome::Completed(output) => output.read().unwrap(),
            other => format!("{other:?}"),
        }
    }

    async fn status(&self, run: &str) -> Status {
        self.memory.summary(&id(run)).await.unwrap().unwrap().status
    }

    async fn order(&self, run: &str, order: fn(RequestedBy) -> MessageBody) -> bool {
        let request = RequestedBy { by: "ops".into(), why: "lunch".into() };
        self.engine.deliver(&id(run), order(request)).await.unwrap()
    }
}

#[tokio::test]
async fn a_signal_is_received_once_also_when_it_came_first() {
    let world = World::new().await;
    world.engine.start(new_run("r", "listener", "")).await.unwrap();
    world.engine.signal(&id("r"), "hello", Payload::of("you")).await.unwrap();
    assert_eq!(world.result("r").await, "hello you");
    assert!(
        !world.engine.signal(&id("r"), "late", Payload::null()).await.unwrap(),
        "an ended run takes no message"
    );
    let unknown = world.engine.signal(&id("nobody"), "hello", Payload::null()).await;
    assert_eq!(unknown, Err(StoreError::UnknownRun(id("nobody"))));
    world.engine.stop().await;
}

#[tokio::test]
async fn a_receive_ends_when_its_time_is_over() {
    let world = World::new().await;
    world.engine.start(new_run("r", "listener", "30")).await.unwrap();
    until("it waits", async || matches!(world.status("r").await, Status::Waiting { .. })).await;
    world.clock.advance(30);
    assert_eq!(world.result("r").await, "nothing came");
    world.engine.stop().await;
}

#[tokio::test]
async fn starting_twice_is_joining() {
    let world = World::new().await;
    let started = |input: &str| world.engine.start(new_run("r", "listener", input));
    assert_eq!(started("").await, Ok(Started::New));
    assert_eq!(started("other").await, Ok(Started::Joined));
    world.engine.signal(&id("r"), "a", Payload::of("b")).await.unwrap();
    world.result("r").await;
    assert_eq!(started("").await, Ok(Started::Over));
    assert_eq!(
        shape(&world.memory, "r").await.iter().filter(|kind| *kind == "RunStarted").count(),
        1
    );
    world.engine.stop().await;
}

#[tokio::test]
async fn a_run_that_is_over_can_be_started_again_under_its_id() {
    let world = World::new().await;
    world.engine.start(new_run("r", "counter", "3")).await.unwrap();
    world.result("r").await;
    world.engine.restart(new_run("r", "listener", "")).await.unwrap();
    world.engine.signal(&id("r"), "second", Payload::of("life")).await.unwrap();
    assert_eq!(world.result("r").await, "second life");
    world.engine.stop().await;
}

#[tokio::test]
async fn a_timer_outlives_the_engine_and_memory() {
    let (memory, clock) = (MemoryStore::new(), HeldClock::default());
    let first = world(memory.clone(), clock.clone(), 100).await;
    first.engine.start(new_run("r", "sleeper", "")).await.unwrap();
    until("it sleeps", async || matches!(first.status("r").await, Status::Waiting { .. })).await;
    first.engine.stop().await;
    clock.advance(1800);
    let second = world(memory, clock, 0).await;
    assert_eq!(second.engine.resident_runs(), 0, "a sleeping run takes no memory");
    second.clock.advance(1800);
    assert_eq!(second.result("r").await, "slept 3600 s");
    second.engine.stop().await;
}

#[tokio::test]
async fn waiting_runs_leave_memory_and_come_back_for_a_message() {
    let world = world(MemoryStore::new(), HeldClock::default(), 0).await;
    for number in 0..50 {
        world.engine.start(new_run(&format!("r{number}"), "listener", "")).await.unwrap();
    }
    until("all have left", async || world.engine.resident_runs() == 0).await;
    for number in 0..50 {
        world
            .engine
            .signal(&id(&format!("r{number}")), "n", Payload::of(&number.to_string()))
            .await
            .unwrap();
    }
    for number in 0..50 {
        assert_eq!(world.result(&format!("r{number}")).await, format!("n {number}"));
    }
    world.engine.stop().await;
}

#[tokio::test]
async fn a_run_that_continues_as_new_keeps_its_id_and_a_short_history() {
    let world = World::new().await;
    world.engine.start(new_run("r", "counter", "0")).await.unwrap();
    assert_eq!(world.result("r").await, "three");
    assert_eq!(world.counts.all().len(), 4);
    let summary = world.memory.summary(&id("r")).await.unwrap().unwrap();
    assert_eq!(summary.origin, 6, "replay begins at the last segment");
    world.engine.stop().await;
}

#[tokio::test]
async fn children_are_joined_by_id_and_tell_their_outcome() {
    let world = World::new().await;
    world.engine.start(new_run("p", "parent", "first")).await.unwrap();
    assert_eq!(world.result("p").await, "first: child true");
    world.engine.start(new_run("q", "parent", "second")).await.unwrap();
    assert_eq!(
        world.result("q").await,
        "second: child true",
        "the outcome of a child that is over is known"
    );
    assert_eq!(world.counts.of("segment 3"), 1);
    world.engine.stop().await;
}

#[tokio::test]
async fn a_parent_begun_again_hears_what_its_child_still_waits_for() {
    let first = World::new().await;
    first.engine.start(new_run("p", "grantor", "no")).await.unwrap();
    let waits = async || {
        let summary = first.memory.summary(&id("child")).await.unwrap();
        summary.is_some_and(|child| matches!(child.status, Status::Waiting { .. }))
            && first.memory.mailbox(&id("p")).await.unwrap().is_empty()
    };
    until("the child waits, and its parent has its request", waits).await;
    first.engine.stop().await;

    // Nothing is left of the parent.
    let left = MemoryStore::new();
    let events = first.memory.read(&id("child"), 0).await.unwrap();
    let summary = first.memory.summary(&id("child")).await.unwrap();
    left.commit(Commit { summary, ..Commit::of(id("child"), events) }).await.unwrap();
    let second = world(left, HeldClock::default(), 100).await;
    second.clock.advance(60);
    second.engine.start(new_run("p", "grantor", "yes")).await.unwrap();
    assert_eq!(second.result("p").await, "ready", "the request came once");
    assert_eq!(second.result("child").await, "turn");
    second.engine.stop().await;
}

#[tokio::test]
async fn a_paused_run_does_nothing_until_resumed_also_after_a_restart() {
    let (memory, clock) = (MemoryStore::new(), HeldClock::default());
    let first = world(memory.clone(), clock.clone(), 100).await;
    first.engine.start(new_run("r", "listener", "")).await.unwrap();
    assert!(first.order("r", MessageBody::Pause).await);
    let request = RequestedBy { by: "ops".into(), why: "lunch".into() };
    until("it is paused", async || first.status("r").await == Status::Paused(request.clone()))
        .await;
    first.engine.signal(&id("r"), "hello", Payload::of("you")).await.unwrap();
    first.engine.stop().await;

    let second = world(memory, clock, 0).await;
    until("it has looked", async || second.engine.resident_runs() == 0).await;
    assert_eq!(second.status("r").await, Status::Paused(request));
    assert!(second.order("r", MessageBody::Resume).await);
    assert_eq!(second.result("r").await, "hello you");
    second.engine.stop().await;
}

#[tokio::test]
async fn a_waiting_run_can_be_cancelled() {
    let world = World::new().await;
    world.engine.start(new_run("r", "sleeper", "")).await.unwrap();
    until("it sleeps", async || matches!(world.status("r").await, Status::Waiting { .. })).await;
    world.order("r", MessageBody::Cancel).await;
    assert_eq!(world.result("r").await, "Cancelled");
    world.engine.stop().await;
}

#[tokio::test]
async fn who_subscribes_during_a_commit_gets_its_events() {
    let store = DyingStore::new(Arc::new(MemoryStore::new()), None).holding(2);
    let quick = script(|_, _| Box::pin(async { done("at once") }));
    let workflows = Workflows::new().with("quick", quick);
    let engine =
        engine_with(store.clone(), workflows, Handlers::new(), SystemClock, Options::default())
            .await;
    engine.start(new_run("r", "quick", "")).await.unwrap();
    until("its end is being written", async || store.appends() == 2).await;
    let mut changes = engine.changes();
    let summary = store.summary(&id("r")).await.unwrap().unwrap();
    assert!(!summary.status.is_terminal(), "the reader does not see the end in the store");
    store.let_go();
    let told = tokio::time::timeout(PATIENCE, changes.recv()).await.unwrap().unwrap();
    assert_eq!(told.events[0].kind.name(), "RunCompleted");
}
