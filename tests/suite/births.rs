//! Nothing that concerns a run is lost around its birth, whoever starts it, and whenever.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use longhaul_engine::store::{Commit, Committed, Delivery};
use longhaul_engine::{
    ContextExt, Event, EventStore, Handlers, Message, Options, Outcome, Payload, Position, Received, RunId, Started,
    StoreError, Summary, Workflows,
};
use longhaul_storage::MemoryStore;
use longhaul_tests::script::{Counts, Step, capitals, done, engine_with, id, new_run, script};

const RUNS: usize = 200;

/// Messages to each run, sent by as many who all start it.
const STARTERS: usize = 3;

/// A store that answers late, each time another bit: what others do comes in between.
struct Late {
    inner: MemoryStore,
    calls: AtomicUsize,
}

impl Late {
    async fn linger(&self) {
        for _ in 0..self.calls.fetch_add(1, Ordering::Relaxed) * 7 % 11 {
            tokio::task::yield_now().await;
        }
    }
}

#[async_trait]
impl EventStore for Late {
    async fn commit(&self, commit: Commit) -> Result<Committed, StoreError> {
        self.linger().await;
        let committed = self.inner.commit(commit).await;
        self.linger().await;
        committed
    }

    async fn deliver(&self, delivery: Delivery) -> Result<Option<Message>, StoreError> {
        let delivered = self.inner.deliver(delivery).await;
        self.linger().await;
        delivered
    }

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
                if let Some(Received::Signal { payload, .. }) = context.receive(None).await? {
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
        let store = Late { inner: MemoryStore::new(), calls: AtomicUsize::new(0) };
        let options = Options { resident_waiting, ..Options::default() };
        let engine = engine_with(store, workflows(), handlers, longhaul_engine::SystemClock, options).await;
        let starters = (0..RUNS * STARTERS).map(|number| {
            let engine = engine.clone();
            tokio::spawn(async move {
                let run = number / STARTERS;
                // Those that nobody speaks to are woken by their birth alone.
                let messages = if is_spoken_to(run) { STARTERS } else { 0 };
                let name = format!("run-{run}");
                let started = engine.start(new_run(&name, "collector", &messages.to_string())).await.unwrap();
                if messages > 0 {
                    assert!(engine.signal(&id(&name), "heard", Payload::of(&(number % STARTERS))).await.unwrap());
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
