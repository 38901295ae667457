//! Workflows and activities as closures.

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use longhaul_engine::{
    Activity, Attempt, Context, Delays, Effect, Ending, Engine, Failure, Handler, Handlers, NewRun,
    Options, Parts, Payload, Policy, Probe, RunId, Stop, SystemClock, Workflow, Workflows,
};
use longhaul_engine::{Clock, EventLog, StoreError};
use longhaul_workflows::backlog::FeatureId;
use longhaul_workflows::project::{BlockRequest, SyncRequest};

use crate::wait::PATIENCE;

/// A workflow as a closure.
pub struct Script<F>(pub F);

#[async_trait]
impl<F> Workflow for Script<F>
where
    F: for<'a> Fn(&'a mut dyn Context, Payload) -> BoxFuture<'a, Result<Ending, Stop>>
        + Send
        + Sync
        + 'static,
{
    async fn run(&self, context: &mut dyn Context, input: Payload) -> Result<Ending, Stop> {
        (self.0)(context, input).await
    }
}

/// A workflow written as a closure that is given the context and the input.
pub fn script<F>(decide: F) -> Script<F>
where
    F: for<'a> Fn(&'a mut dyn Context, Payload) -> BoxFuture<'a, Result<Ending, Stop>>
        + Send
        + Sync
        + 'static,
{
    Script(decide)
}

/// The ending of a run with a text.
pub fn done(text: impl Into<String>) -> Result<Ending, Stop> {
    Ok(Ending::Complete(Payload::of(&text.into())))
}

/// Text in, text out; runs again after a crash. Five attempts, one second apart.
#[derive(Debug)]
pub struct Step;

impl Activity for Step {
    const NAME: &'static str = "step";
    type Input = String;
    type Output = String;
    fn policy(_: &Self::Input) -> Policy {
        Policy { retry: Delays::List(vec![Duration::from_secs(1); 4]), ..Policy::idempotent() }
    }
}

/// Text in, text out; never repeated unasked. Each attempt may take a minute and be silent for ten
/// seconds.
#[derive(Debug)]
pub struct Deed;

impl Activity for Deed {
    const NAME: &'static str = "deed";
    type Input = String;
    type Output = String;
    fn policy(_: &Self::Input) -> Policy {
        Policy {
            retry: Delays::List(vec![Duration::from_secs(1); 4]),
            start_to_close: Duration::from_mins(1),
            heartbeat: Some(Duration::from_secs(10)),
            effect: Effect::Guarded,
            pool: Some("deeds".into()),
            within: None,
            rank: 0,
        }
    }
}

type Action = dyn Fn(String, Attempt) -> BoxFuture<'static, Result<String, Failure>> + Send + Sync;
type Question = dyn Fn(String) -> Probe<String> + Send + Sync;

/// A handler as closures, which counts how often each input was performed.
pub struct Hands<A> {
    action: Box<Action>,
    question: Box<Question>,
    counts: Counts,
    activity: PhantomData<fn() -> A>,
}

/// How often each input was performed.
#[derive(Debug, Clone, Default)]
pub struct Counts(Arc<Mutex<BTreeMap<String, u32>>>);

impl Counts {
    /// How often this input was performed.
    pub fn of(&self, input: &str) -> u32 {
        self.all().get(input).copied().unwrap_or(0)
    }

    /// All of them.
    pub fn all(&self) -> BTreeMap<String, u32> {
        self.0.lock().expect("no test panics while counting").clone()
    }

    /// Counts one more.
    pub fn add(&self, input: &str) {
        *self
            .0
            .lock()
            .expect("no test panics while counting")
            .entry(input.to_owned())
            .or_default() += 1;
    }
}

impl<A> Hands<A> {
    /// A handler that performs this.
    pub fn new<F, R>(counts: &Counts, action: F) -> Self
    where
        F: Fn(String, Attempt) -> R + Send + Sync + 'static,
        R: Future<Output = Result<String, Failure>> + Send + 'static,
    {
        Self {
            action: Box::new(move |input, attempt| Box::pin(action(input, attempt))),
            question: Box::new(|_| Probe::Unknown("the test does not know".into())),
            counts: counts.clone(),
            activity: PhantomData,
        }
    }

    /// And answers this when the world is asked.
    #[must_use]
    pub fn probed(
        mut self,
        question: impl Fn(String) -> Probe<String> + Send + Sync + 'static,
    ) -> Self {
        self.question = Box::new(question);
        self
    }
}

#[async_trait]
impl<A: Activity<Input = String, Output = String>> Handler<A> for Hands<A> {
    async fn perform(&self, input: String, attempt: &Attempt) -> Result<String, Failure> {
        self.counts.add(&input);
        (self.action)(input, attempt.clone()).await
    }

    async fn probe(&self, input: String, _attempt: &Attempt) -> Probe<String> {
        (self.question)(input)
    }
}

/// A handler of [`Step`] that gives its input back in capitals.
pub fn capitals(counts: &Counts) -> Hands<Step> {
    Hands::new(counts, |input, _| async move { Ok(input.to_uppercase()) })
}

/// An engine on a store.
pub async fn engine(store: impl EventLog, workflows: Workflows, handlers: Handlers) -> Engine {
    engine_with(store, workflows, handlers, SystemClock, Options::default()).await
}

/// An engine on a store, with a clock and options.
pub async fn engine_with(
    store: impl EventLog,
    workflows: Workflows,
    handlers: Handlers,
    clock: impl Clock,
    options: Options,
) -> Engine {
    let parts =
        Parts { store: Arc::new(store), workflows, handlers, clock: Arc::new(clock), options };
    Engine::open(parts).await.expect("the store of a test opens")
}

/// An engine on a store that may fail.
pub async fn opened(
    store: impl EventLog,
    workflows: Workflows,
    handlers: Handlers,
) -> Result<Engine, StoreError> {
    let (clock, options) = (Arc::new(SystemClock), Options::default());
    Engine::open(Parts { store: Arc::new(store), workflows, handlers, clock, options }).await
}

/// The id of a run.
pub fn id(text: &str) -> RunId {
    RunId::new(text).expect("tests use valid ids")
}

/// A run to start.
pub fn new_run(run: &str, workflow: &str, input: &str) -> NewRun {
    NewRun {
        run: id(run),
        workflow: workflow.into(),
        input: Payload::of(input),
        labels: BTreeMap::new(),
    }
}

/// The content of a signal that asks a project to read its list.
pub fn sync(id: &str) -> Payload {
    Payload::of(&SyncRequest::of_all(id))
}

/// The content of a signal that asks a project to block a feature.
pub fn block(feature: &str, reason: &str) -> Payload {
    let feature = FeatureId::new(feature).expect("a valid id");
    Payload::of(&BlockRequest { feature, reason: reason.into() })
}

/// Waits until something holds, at most ten seconds.
pub async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let begun = Instant::now();
    loop {
        let waited = begun.elapsed();
        if holds().await {
            return;
        }
        assert!(waited < PATIENCE, "waited {waited:?} in vain: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// A history in short texts, one for each event: position, kind, and what matters of it.
pub async fn shape(store: &dyn EventLog, run: &str) -> Vec<String> {
    let events = store.read(&id(run), 0).await.expect("the store of a test can be read");
    events.iter().map(|event| event.kind.name().to_owned()).collect()
}
