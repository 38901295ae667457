//! Activities: the contract that workflow code names, and the handler that touches the world.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use serde::{Serialize, de::DeserializeOwned};

use crate::failure::Failure;
use crate::id::{RunId, Slot};
use crate::payload::Payload;
use crate::policy::Policy;

/// The contract of an activity. Workflow code knows this and never the handler.
pub trait Activity: Send + Sync + 'static {
    /// Its name in histories; never reused for something else.
    const NAME: &'static str;
    /// What it is given.
    type Input: Serialize + DeserializeOwned + Send + Sync;
    /// What it gives.
    type Output: Serialize + DeserializeOwned + Send + Sync;
    /// How it is tried, which may depend on the input: a pool per provider, a timeout per call.
    fn policy(_input: &Self::Input) -> Policy {
        Policy::idempotent()
    }
}

/// The code of an activity.
#[async_trait]
pub trait Handler<A: Activity>: Send + Sync + 'static {
    /// Performs one attempt. Must end soon after `attempt.cancelled()` resolves.
    async fn perform(&self, input: A::Input, attempt: &Attempt) -> Result<A::Output, Failure>;

    /// Asks the world what became of a guarded attempt whose end was not recorded.
    async fn probe(&self, _input: A::Input, _attempt: &Attempt) -> Probe<A::Output> {
        Probe::Unknown("this activity has no way to find out".into())
    }
}

/// What the world says about an attempt whose end was not recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Probe<T> {
    /// The effect happened, with this output.
    Landed(T),
    /// It did not happen, or only in part that is safe to do again.
    NotLanded,
    /// The world does not tell, for this reason.
    Unknown(String),
    /// The machine cannot find out now, for this reason: the question is put again later.
    Machine(String),
}

/// One try of an activity, as its handler sees it.
#[derive(Clone)]
pub struct Attempt {
    /// The run that called.
    pub run: RunId,
    /// The call within it: with the run, a key that is the same for every attempt of this call.
    pub slot: Slot,
    /// Which try, from one.
    pub number: u32,
    /// The progress that the last attempt recorded.
    pub progress: Option<Payload>,
    /// The worker that runs it.
    pub worker: Arc<dyn Worker>,
}

/// The worker that runs an attempt: an engine, or a process that an engine has dispatched the call
/// to.
#[async_trait]
pub trait Worker: Send + Sync {
    /// Takes a sign of life.
    fn heartbeat(&self);

    /// Records progress for the next attempt.
    fn record_progress(&self, details: Payload);

    /// Shows an event to live views. It is not recorded and may be lost.
    fn emit(&self, event: Payload);

    /// Whether the attempt should end.
    fn is_cancelled(&self) -> bool;

    /// Resolves when the attempt should end: cancelled, timed out, or the worker is stopping.
    async fn cancelled(&self);
}

/// A worker that never cancels and ignores what an attempt says.
struct Detached;

#[async_trait]
impl Worker for Detached {
    fn heartbeat(&self) {}

    fn record_progress(&self, _details: Payload) {}

    fn emit(&self, _event: Payload) {}

    fn is_cancelled(&self) -> bool {
        false
    }

    async fn cancelled(&self) {
        std::future::pending::<()>().await;
    }
}

impl Attempt {
    /// The first attempt of a call, on a worker that never cancels it.
    pub fn detached(run: RunId, slot: Slot) -> Self {
        Self { run, slot, number: 1, progress: None, worker: Arc::new(Detached) }
    }

    /// A name for this call that is the same in every attempt and differs from every other call's.
    pub fn key(&self) -> String {
        format!("{}@{}", self.run, self.slot)
    }

    /// Says that the attempt is alive. Cheap; not recorded.
    pub fn heartbeat(&self) {
        self.worker.heartbeat();
    }

    /// Records progress in the history; the next attempt of this call is given it.
    pub fn progress(&self, details: Payload) {
        self.worker.heartbeat();
        self.worker.record_progress(details);
    }

    /// Shows an event to live views: usage, a tool call. It is not recorded.
    pub fn emit(&self, event: Payload) {
        self.worker.heartbeat();
        self.worker.emit(event);
    }

    /// Whether the attempt should end.
    pub fn is_cancelled(&self) -> bool {
        self.worker.is_cancelled()
    }

    /// Resolves when the attempt should end: cancelled, timed out, or the engine is stopping.
    pub async fn cancelled(&self) {
        self.worker.cancelled().await;
    }
}

/// One call of an activity, as data: any engine can schedule it anywhere.
#[derive(Debug, Clone)]
pub struct Call {
    /// The activity.
    pub name: &'static str,
    /// Its input.
    pub input: Payload,
    /// How it is tried.
    pub policy: Policy,
}

impl Call {
    /// The call of an activity with an input.
    pub fn of<A: Activity>(input: &A::Input) -> Self {
        Self { name: A::NAME, input: Payload::of(input), policy: A::policy(input) }
    }
}

/// The handlers of an engine, by the names of their activities.
#[derive(Clone, Default)]
pub struct Handlers(BTreeMap<&'static str, Arc<dyn ErasedHandler>>);

impl Handlers {
    /// No handlers.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the handler of an activity; the last one added counts.
    #[must_use]
    pub fn with<A: Activity>(mut self, handler: impl Handler<A>) -> Self {
        self.0.insert(A::NAME, Arc::new(Erased::<A, _>(handler, std::marker::PhantomData)));
        self
    }

    /// The names of all activities that have a handler, sorted.
    pub fn names(&self) -> Vec<&'static str> {
        let mut names: Vec<_> = self.0.keys().copied().collect();
        names.sort_unstable();
        names
    }

    /// The handler of an activity.
    pub fn find(&self, name: &str) -> Option<&Arc<dyn ErasedHandler>> {
        self.0.get(name)
    }

    /// The same handlers, each wrapped: for tests that make effects fail.
    #[must_use]
    pub fn wrapped(
        self,
        wrap: impl Fn(&'static str, Arc<dyn ErasedHandler>) -> Arc<dyn ErasedHandler>,
    ) -> Self {
        Self(self.0.into_iter().map(|(name, handler)| (name, wrap(name, handler))).collect())
    }
}

/// A handler whose types are gone: payload in, payload out.
#[async_trait]
pub trait ErasedHandler: Send + Sync {
    /// See [`Handler::perform`].
    async fn perform(&self, input: &Payload, attempt: &Attempt) -> Result<Payload, Failure>;
    /// See [`Handler::probe`].
    async fn probe(&self, input: &Payload, attempt: &Attempt) -> Probe<Payload>;
}

struct Erased<A, H>(H, std::marker::PhantomData<fn() -> A>);

#[async_trait]
impl<A: Activity, H: Handler<A>> ErasedHandler for Erased<A, H> {
    async fn perform(&self, input: &Payload, attempt: &Attempt) -> Result<Payload, Failure> {
        let input =
            input.read().map_err(|error| Failure::terminal(format!("{}: {error}", A::NAME)))?;
        let output = self.0.perform(input, attempt).await?;
        Ok(Payload::of(&output))
    }

    async fn probe(&self, input: &Payload, attempt: &Attempt) -> Probe<Payload> {
        let input = match input.read() {
            Ok(input) => input,
            Err(error) => return Probe::Unknown(format!("{}: {error}", A::NAME)),
        };
        match self.0.probe(input, attempt).await {
            Probe::Landed(output) => Probe::Landed(Payload::of(&output)),
            Probe::NotLanded => Probe::NotLanded,
            Probe::Unknown(reason) => Probe::Unknown(reason),
            Probe::Machine(reason) => Probe::Machine(reason),
        }
    }
}
