//! Activities: the contract that workflow code names, and the handler that touches the world.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use serde::{Serialize, de::DeserializeOwned};

use crate::failure::Failure;
use crate::id::{RunId, Slot};
use crate::payload::Payload;
use crate::policy::Policy;

/// The contract of an activity. Workflow code depends on the contract, never on the handler.
pub trait Activity: Send + Sync + 'static {
    /// Its name in histories; never reused.
    const NAME: &'static str;
    /// The input payload type.
    type Input: Serialize + DeserializeOwned + Send + Sync;
    /// The output payload type.
    type Output: Serialize + DeserializeOwned + Send + Sync;
    /// The retry policy. It may depend on the input: a pool per provider, a timeout per call.
    fn policy(_input: &Self::Input) -> Policy {
        Policy::idempotent()
    }
}

/// The implementation of an activity.
#[async_trait]
pub trait Handler<A: Activity>: Send + Sync + 'static {
    /// Performs one attempt. Must end soon after `attempt.cancelled()` resolves: a cancelled run
    /// waits for it. After a timeout, and when the run is terminated or the engine stops, the
    /// engine drops it after 30 seconds.
    async fn perform(&self, input: A::Input, attempt: &Attempt) -> Result<A::Output, Failure>;

    /// Finds out whether a guarded attempt without a recorded end took effect.
    async fn probe(&self, _input: A::Input, _attempt: &Attempt) -> Probe<A::Output> {
        Probe::Unknown("the activity has no probe".into())
    }
}

/// The outcome of a guarded attempt without a recorded end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Probe<T> {
    /// The effect happened, with this output.
    Happened(T),
    /// It did not happen, or only in a part that is safe to repeat.
    NotHappened,
    /// The effect cannot be determined, for this reason.
    Unknown(String),
    /// A machine failure prevents the probe, for this reason; it is repeated later.
    Machine(String),
}

/// One attempt of an activity, as seen by its handler.
#[derive(Clone)]
pub struct Attempt {
    /// The run that called.
    pub run: RunId,
    /// The call within the run. Run and slot form an idempotency key, equal for all attempts.
    pub slot: Slot,
    /// The attempt number, from one.
    pub number: u32,
    /// The progress that the last attempt recorded.
    pub last_progress: Option<Payload>,
    /// The worker that runs it.
    pub worker: Arc<dyn Worker>,
}

/// The worker that runs an attempt: an engine, or a process to which an engine dispatched it.
#[async_trait]
pub trait Worker: Send + Sync {
    /// Receives a heartbeat.
    fn heartbeat(&self);

    /// Records progress for the next attempt.
    fn record_progress(&self, details: Payload);

    /// Emits an event to live views. It is not recorded and may be lost. A worker without live
    /// views ignores it.
    fn emit(&self, _event: Payload) {}

    /// Whether the attempt should end.
    fn is_cancelled(&self) -> bool;

    /// Resolves when the attempt should end: cancelled, timed out, or the worker is stopping.
    async fn cancelled(&self);
}

/// A worker that never cancels and ignores heartbeats, progress and events.
struct Detached;

#[async_trait]
impl Worker for Detached {
    fn heartbeat(&self) {}

    fn record_progress(&self, _details: Payload) {}

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
        Self { run, slot, number: 1, last_progress: None, worker: Arc::new(Detached) }
    }

    /// The idempotency key of this call: equal for all its attempts, unique among calls.
    pub fn key(&self) -> String {
        format!("{}@{}", self.run, self.slot)
    }

    /// Sends a heartbeat. Cheap; not recorded.
    pub fn heartbeat(&self) {
        self.worker.heartbeat();
    }

    /// Records progress in the history; the next attempt of this call receives it.
    pub fn record_progress(&self, details: Payload) {
        self.worker.heartbeat();
        self.worker.record_progress(details);
    }

    /// Emits an event to live views, such as usage or a tool call. It is not recorded.
    pub fn emit(&self, event: Payload) {
        self.worker.heartbeat();
        self.worker.emit(event);
    }

    /// Whether the attempt should end.
    pub fn is_cancelled(&self) -> bool {
        self.worker.is_cancelled()
    }

    /// Resolves when the attempt should end: cancelled, timed out, or the worker is stopping.
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
    /// Its retry policy.
    pub policy: Policy,
}

impl Call {
    /// The call of an activity with an input.
    pub fn of<A: Activity>(input: &A::Input) -> Self {
        Self { name: A::NAME, input: Payload::of(input), policy: A::policy(input) }
    }
}

/// The handlers of an engine, by activity name.
#[derive(Clone, Default)]
pub struct Handlers(BTreeMap<&'static str, Arc<dyn ErasedHandler>>);

impl Handlers {
    /// No handlers.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the handler of an activity.
    ///
    /// # Panics
    /// If the activity has a handler already: a bug in the program.
    #[must_use]
    pub fn with<A: Activity>(mut self, handler: impl Handler<A>) -> Self {
        let erased = Arc::new(Erased::<A, _>(handler, std::marker::PhantomData));
        assert!(self.0.insert(A::NAME, erased).is_none(), "`{}` has two handlers", A::NAME);
        self
    }

    /// The handler of an activity.
    pub fn find(&self, name: &str) -> Option<&Arc<dyn ErasedHandler>> {
        self.0.get(name)
    }

    /// The same handlers, each wrapped, so that tests can inject failures.
    #[must_use]
    pub fn wrapped(
        self,
        wrap: impl Fn(&'static str, Arc<dyn ErasedHandler>) -> Arc<dyn ErasedHandler>,
    ) -> Self {
        Self(self.0.into_iter().map(|(name, handler)| (name, wrap(name, handler))).collect())
    }
}

/// A type-erased handler: payload in, payload out.
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
            Probe::Happened(output) => Probe::Happened(Payload::of(&output)),
            Probe::NotHappened => Probe::NotHappened,
            Probe::Unknown(reason) => Probe::Unknown(reason),
            Probe::Machine(reason) => Probe::Machine(reason),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Echo;

    impl Activity for Echo {
        const NAME: &'static str = "echo";
        type Input = ();
        type Output = ();
    }

    #[async_trait]
    impl Handler<Self> for Echo {
        async fn perform(&self, _input: (), _attempt: &Attempt) -> Result<(), Failure> {
            Ok(())
        }
    }

    #[test]
    #[should_panic(expected = "`echo` has two handlers")]
    fn a_second_handler_is_refused() {
        let _ = Handlers::new().with::<Echo>(Echo).with::<Echo>(Echo);
    }
}
