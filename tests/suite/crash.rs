//! A run that dies at every append, on either side of it, ends as if nothing had happened.

use std::sync::Arc;

use longhaul_engine::store::Delivery;
use longhaul_engine::{
    Child, ContextExt, EventLog, Filter, Handlers, MessageBody, Outcome, Payload, Probe, Received,
    RunId, RunReader as _, Workflows,
};
use longhaul_storage::MemoryStore;
use longhaul_tests::dying::{DyingStore, Side};
use longhaul_tests::script::{
    Counts, Deed, Hands, Step, capitals, done, engine, id, new_run, opened, script, shape, until,
};

/// A bit of everything: activities of both kinds, several at once, a child, a signal, a status, an
/// id.
fn workflows() -> Workflows {
    let parent = script(|context, _| {
        Box::pin(async move {
            let first = context.call::<Step>("a".into()).await?;
            let uuid = context.uuid().await?;
            context.set("seen", &first).await?;
            let input = Payload::of("hello");
            context
                .start(Child { run: id("child"), workflow: "child", input, labels: [].into() })
                .await?;
            let both = context.all::<Step>(&["b".into(), "c".into()]).await?;
            let deed = context.call::<Deed>("d".into()).await?;
            context.send(id("child"), "go", Payload::of("now")).await?;
            let Some(Received::ChildEnded { outcome: Outcome::Completed(output), .. }) =
                context.receive(&Filter::any(), None).await?
            else {
                return done("the child did not complete");
            };
            let again = context.uuid().await?;
            let both: Vec<_> = both.into_iter().flatten().collect();
            done(format!(
                "{first} {} {deed} {} {}",
                both.join(" "),
                output.read::<String>()?,
                uuid != again
            ))
        })
    });
    let child = script(|context, input| {
        Box::pin(async move {
            let Some(Received::Signal { payload, .. }) =
                context.receive(&Filter::any(), None).await?
            else {
                return done("nothing");
            };
            let stepped = context.call::<Step>("child".into()).await?;
            done(format!("{} {} {stepped}", input.read::<String>()?, payload.read::<String>()?))
        })
    });
    Workflows::new().with("parent", parent).with("child", child)
}

/// The handlers over a world that remembers which deeds were done.
fn handlers(counts: &Counts, world: &Counts) -> Handlers {
    let (done, asked) = (world.clone(), world.clone());
    let deeds = Hands::<Deed>::new(counts, move |input, _| {
        done.add(&input);
        async move { Ok(input.to_uppercase()) }
    });
    let deeds = deeds.probed(move |input| match asked.of(&input) {
        0 => Probe::NotHappened,
        _ => Probe::Happened(input.to_uppercase()),
    });
    Handlers::new().with::<Step>(capitals(counts)).with::<Deed>(deeds)
}

/// Runs to the end, dying once on the way; the appends of the first life, the output, and both
/// histories.
async fn live(dies_at: Option<(u32, Side)>) -> (u32, String, Vec<Vec<String>>) {
    let (memory, counts, world) = (MemoryStore::new(), Counts::default(), Counts::default());
    let store = DyingStore::new(Arc::new(memory.clone()), dies_at);
    let first = engine(store.clone(), workflows(), handlers(&counts, &world)).await;
    let started = first.start(new_run("parent", "parent", "")).await;
    if started.is_ok() {
        until("the first life ends", async || {
            store.is_dead() || first.outcome_is_known(&id("parent")).await
        })
        .await;
    }
    first.stop().await;

    let second = engine(memory.clone(), workflows(), handlers(&counts, &world)).await;
    second.start(new_run("parent", "parent", "")).await.unwrap();
    let Outcome::Completed(output) = second.outcome(&id("parent")).await.unwrap() else {
        panic!("it completes")
    };
    second.stop().await;
    for (input, times) in world.all() {
        assert_eq!(times, 1, "the deed `{input}` is done once, dying at {dies_at:?}");
    }
    for (input, times) in counts.all() {
        assert!(times <= 2, "`{input}` was performed {times} times, dying at {dies_at:?}");
    }
    let shapes = vec![shape(&memory, "parent").await, shape(&memory, "child").await];
    (store.appends(), output.read().unwrap(), shapes)
}

trait OutcomeIsKnown {
    async fn outcome_is_known(&self, run: &RunId) -> bool;
}

impl OutcomeIsKnown for longhaul_engine::Engine {
    async fn outcome_is_known(&self, run: &RunId) -> bool {
        let summary = self.store().summary(run).await;
        summary.is_ok_and(|summary| summary.is_some_and(|summary| summary.status.is_terminal()))
    }
}

/// What a history holds, but for how it came about: waiting is not always seen, and an attempt that
/// died between its start and its effect is followed by another.
fn essence(shapes: &[Vec<String>]) -> Vec<Vec<String>> {
    let essence = |shape: &Vec<String>| {
        let mut kinds: Vec<String> =
            shape.iter().filter(|kind| *kind != "MessageAwaited").cloned().collect();
        kinds.dedup_by(|next, kind| next == kind && kind == "ActivityStarted");
        kinds
    };
    shapes.iter().map(essence).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn dying_at_every_append_changes_nothing() {
    let (appends, output, shapes) = live(None).await;
    assert_eq!(output, "A B C D hello now CHILD true");
    assert!(appends > 12, "the run is long enough to be worth it: {appends} appends");
    for number in 1..=appends {
        for side in [Side::Before, Side::After] {
            let (_, again, other) = live(Some((number, side))).await;
            assert_eq!(again, output, "dying at append {number}, {side:?}");
            assert_eq!(essence(&other), essence(&shapes), "dying at append {number}, {side:?}");
        }
    }
}

/// Counts its messages under two keys, and writes something else each time.
fn tally() -> Workflows {
    let tally = script(|context, _| {
        Box::pin(async move {
            for count in 1..=3_u32 {
                context.receive(&Filter::any(), None).await?;
                context.set("left", &count).await?;
                context.set("right", &count).await?;
                context.uuid().await?;
            }
            done("counted")
        })
    });
    Workflows::new().with("tally", tally)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_is_taken_when_what_it_changed_can_be_seen() {
    let mut waiting = Vec::new();
    for number in 1.. {
        let memory = MemoryStore::new();
        let first = engine(memory.clone(), tally(), Handlers::new()).await;
        first.start(new_run("tally", "tally", "")).await.unwrap();
        first.stop().await;
        for _ in 0..3 {
            let body = MessageBody::signal("one", Payload::null());
            let delivery = Delivery { to: id("tally"), at: chrono::Utc::now(), body };
            memory.deliver(delivery).await.unwrap().expect("it is heard");
        }
        let store = DyingStore::new(Arc::new(memory.clone()), Some((number, Side::After)));
        // It may be dead before it is open.
        if let Ok(second) = opened(store.clone(), tally(), Handlers::new()).await {
            let is_counted = async || second.outcome_is_known(&id("tally")).await;
            until("it is dead or counted", async || store.is_dead() || is_counted().await).await;
            second.stop().await;
        }
        if !store.is_dead() {
            break;
        }
        let left = memory.mailbox(&id("tally")).await.unwrap().len();
        let published = memory.published(&id("tally")).await.unwrap();
        let count =
            |key: &str| published.get(key).map_or(0, |value| value.read::<usize>().unwrap());
        assert_eq!((count("left"), count("right")), (3 - left, 3 - left), "after append {number}");
        waiting.push(left);
    }
    assert!(waiting.len() > 2, "it dies between its messages: {waiting:?}");
}
