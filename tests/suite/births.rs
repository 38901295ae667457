//! No message to a run is lost or delivered twice around its start, by any caller, and
//! whenever.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use longhaul_engine::store::{Commit, Committed, Delivery};
use longhaul_engine::{
    ContextExt, Event, EventLog, Filter, Handlers, Message, MessageBody, Options, Outcome, Payload,
    Position, Received, RunId, RunReader, Started, StoreError, Summary, Workflows,
};
use longhaul_storage::MemoryStore;
use longhaul_tests::script::{
    Counts, Hands, Step, capitals, done, engine_with, id, new_run, script, until,
};
use tokio::sync::Semaphore;

const RUNS: usize = 200;

/// Messages to each run, sent by as many who all start it.
const STARTERS: usize = 3;

/// A store that answers late, each time another bit: what others do comes in between.
struct Late {
    inner: MemoryStore,
    calls: AtomicUsize,
    /// Who sends a signal named `late` hears that it is there when this has a permit.
    gate: Arc<Semaphore>,
}

impl Late {
    fn new() -> Self {
        Self {
            inner: MemoryStore::new(),
            calls: AtomicUsize::new(0),
            gate: Arc::new(Semaphore::new(0)),
        }
    }

    async fn linger(&self) {
        for _ in 0..self.calls.fetch_add(1, Ordering::Relaxed) * 7 % 11 {
            tokio::task::yield_now().await;
        }
    }
}

#[async_trait]
impl EventLog for Late {
    async fn commit(&self, commit: Commit) -> Result<Committed, StoreError> {
        self.linger().await;
        let committed = self.inner.commit(commit).await;
        self.linger().await;
        committed
    }

    async fn deliver(&self, delivery: Delivery) -> Result<Option<Message>, StoreError> {
        let is_late = matches!(&delivery.body, MessageBody::Signal { name, .. } if name == "late");
        let delivered = self.inner.deliver(delivery).await;
        self.linger().await;
        if is_late {
            self.gate.acquire().await.expect("it is never closed").forget();
        }
        delivered
    }
}

#[async_trait]
impl RunReader for Late {
    async fn read(&self, run: &RunId, from: Position) -> Result<Vec<Event>, StoreError> {
        let events = self.inner.read(run, from).await;
        self.linger().await;
        events
    }

    async fn mailbox(&self, run: &RunId) -> Result<Vec<Message>, StoreError> {
        let messages = self.inner.mailbox(run).await;
        self.linger().await;
        messages
    }

    async fn summary(&self, run: &RunId) -> Result<Option<Summary>, StoreError> {
        self.inner.summary(run).await
    }

    async fn runs(&self, prefix: &str) -> Result<Vec<(RunId, Summary)>, StoreError> {
        self.inner.runs(prefix).await
    }

    async fn runs_with_mail(&self) -> Result<Vec<RunId>, StoreError> {
        self.inner.runs_with_mail().await
    }

    async fn published(&self, run: &RunId) -> Result<BTreeMap<String, Payload>, StoreError> {
        self.inner.published(run).await
    }
}

fn workflows() -> Workflows {
    // A step first, so that some messages come while it is under way.
    let collector = script(|context, expected| {
        Box::pin(async move {
            context.call::<Step>("once".to_owned()).await?;
            let expected: String = expected.read()?;
            let mut heard = Vec::new();
            while heard.len() < expected.parse().unwrap_or(0) {
                if let Some(Received::Signal { payload, .. }) =
                    context.receive(&Filter::any(), None).await?
                {
                    heard.push(payload.read::<usize>()?);
                }
            }
            heard.sort_unstable();
            done(format!("{heard:?}"))
        })
    });
    Workflows::new().with("collector", collector)
}

fn is_spoken_to(run: usize) -> bool {
    run.is_multiple_of(2)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_several_start_and_speak_to_at_once_hears_each_and_begins_once() {
    for resident_waiting in [0, 1000] {
        let counts = Counts::default();
        let handlers = Handlers::new().with::<Step>(capitals(&counts));
        let store = Late::new();
        let options = Options { resident_waiting, ..Options::default() };
        let engine =
            engine_with(store, workflows(), handlers, longhaul_engine::SystemClock, options).await;
        let starters = (0..RUNS * STARTERS).map(|number| {
            let engine = engine.clone();
            tokio::spawn(async move {
                let run = number / STARTERS;
                // Runs without messages are woken by their start alone.
                let messages = if is_spoken_to(run) { STARTERS } else { 0 };
                let name = format!("run-{run}");
                let started =
                    engine.start(new_run(&name, "collector", &messages.to_string())).await.unwrap();
                if messages > 0 {
                    assert!(
                        engine
                            .signal(&id(&name), "heard", Payload::of(&(number % STARTERS)))
                            .await
                            .unwrap()
                    );
                }
                started
            })
        });
        let started = futures_util::future::join_all(starters).await;
        let new = started.iter().filter(|started| matches!(started, Ok(Started::New))).count();
        assert_eq!(new, RUNS);
        for run in 0..RUNS {
            let expected = if is_spoken_to(run) { "[0, 1, 2]" } else { "[]" };
            let run = id(&format!("run-{run}"));
            let outcome = tokio::time::timeout(Duration::from_mins(1), engine.outcome(&run)).await;
            let Ok(Ok(Outcome::Completed(output))) = outcome else { panic!("{run}: {outcome:?}") };
            assert_eq!(output.read::<String>().unwrap(), expected, "{run}");
        }
        assert_eq!(counts.of("once") as usize, RUNS, "each step is performed once");
        engine.stop().await;
        assert!(engine.stuck().is_empty(), "{:?}", engine.stuck());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_is_received_once_although_its_notification_is_late() {
    let listener = script(|context, _| {
        Box::pin(async move {
            let mut heard = Vec::new();
            while heard.len() < 3 {
                if let Some(Received::Signal { name, .. }) =
                    context.receive(&Filter::any(), None).await?
                {
                    heard.push(name);
                }
            }
            context.call::<Step>("wait".to_owned()).await?;
            while let Some(Received::Signal { name, .. }) =
                context.try_receive(&Filter::any()).await?
            {
                heard.push(name);
            }
            done(heard.join(" "))
        })
    });
    let (store, counts) = (Late::new(), Counts::default());
    let (gate, memory) = (Arc::clone(&store.gate), store.inner.clone());
    let at_work = Arc::new(Semaphore::new(0));
    let (work, let_go) = (Arc::clone(&at_work), Arc::new(Semaphore::new(0)));
    let hold = Arc::clone(&let_go);
    let step = Hands::<Step>::new(&counts, move |input, _| {
        let (work, hold) = (Arc::clone(&work), Arc::clone(&hold));
        async move {
            work.add_permits(1);
            hold.acquire().await.expect("it is never closed").forget();
            Ok(input)
        }
    });
    let (workflows, handlers) =
        (Workflows::new().with("listener", listener), Handlers::new().with::<Step>(step));
    let options = Options { resident_waiting: 0, ..Options::default() };
    let engine =
        engine_with(store, workflows, handlers, longhaul_engine::SystemClock, options).await;
    engine.start(new_run("r", "listener", "")).await.unwrap();
    let run = id("r");
    until("it has left memory", async || engine.resident_runs() == 0).await;
    let sender = tokio::spawn({
        let (engine, run) = (engine.clone(), run.clone());
        async move { engine.signal(&run, "late", Payload::null()).await }
    });
    until("it is in the mailbox", async || memory.mailbox(&run).await.unwrap().len() == 1).await;
    // It is heard with the next one; then the run leaves memory, and comes back for the third.
    engine.signal(&run, "second", Payload::null()).await.unwrap();
    until("both are heard", async || memory.mailbox(&run).await.unwrap().is_empty()).await;
    engine.signal(&run, "third", Payload::null()).await.unwrap();
    at_work.acquire().await.unwrap().forget();
    gate.add_permits(1);
    assert!(sender.await.unwrap().unwrap());
    let_go.add_permits(1);
    let Outcome::Completed(output) = engine.outcome(&run).await.unwrap() else {
        panic!("it completes")
    };
    assert_eq!(output.read::<String>().unwrap(), "late second third");
    engine.stop().await;
}
