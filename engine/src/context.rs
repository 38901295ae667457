//! The trait [`Context`]: the only way in which workflow code reaches the world.
//!
//! The log, a distributed engine and the tests are implementations of it. Calls are data, never
//! closures; parallelism inside a run is [`ContextExt::all`] and nothing else; `&mut self` keeps
//! two commands of one run from overlapping, so a history is linear and replay is a cursor over a
//! list.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use serde::Serialize;
use uuid::Uuid;

use crate::activity::{Activity, Call};
use crate::diverged::Diverged;
use crate::event::{MessageBody, Outcome, RequestedBy};
use crate::failure::Failure;
use crate::fault::EngineFault;
use crate::id::RunId;
use crate::payload::{Payload, PayloadError};

/// Why a command gave no result. Workflow code handles the first two and passes the others on with
/// `?`.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Stop {
    /// The activity failed for good.
    #[error(transparent)]
    Failed(#[from] Failure),
    /// A request cancelled the run. Delivered once; commands after it work, so that a workflow can
    /// tidy up.
    #[error("cancelled")]
    Cancelled,
    /// The code diverged from its history.
    #[error(transparent)]
    Diverged(#[from] Box<Diverged>),
    /// The engine failed: this activation of the run is over, its history is unchanged.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// A recorded payload does not fit the types of the code.
    #[error(transparent)]
    Payload(#[from] PayloadError),
}

/// A failure of the engine that runs a workflow: its log, its network, its registry.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{0}")]
pub struct EngineError(Arc<dyn std::error::Error + Send + Sync>);

impl EngineError {
    /// Wraps the error of an engine.
    pub fn new(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self(error.into().into())
    }
}

impl From<EngineFault> for Stop {
    fn from(fault: EngineFault) -> Self {
        Self::Engine(EngineError::new(fault))
    }
}

/// A message, as a workflow receives it.
#[derive(Debug, Clone, PartialEq)]
pub enum Received {
    /// A person, a program or another run sent it.
    Signal {
        /// Its name.
        name: String,
        /// Its content.
        payload: Payload,
        /// The run that sent it, if a run did.
        from: Option<RunId>,
    },
    /// A child run is over.
    ChildEnded {
        /// The child.
        run: RunId,
        /// How it ended.
        outcome: Outcome,
    },
}

/// The messages that a `receive` takes. The others stay in the mailbox, in their order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Filter {
    /// Every message.
    Any,
    /// Signals of these names.
    Signals(Vec<&'static str>),
    /// Ends of child runs.
    Children,
}

impl Filter {
    /// Every message.
    pub const fn any() -> Self {
        Self::Any
    }

    /// Signals of these names.
    pub fn signals(names: &[&'static str]) -> Self {
        Self::Signals(names.to_vec())
    }

    /// Whether it takes a message.
    pub fn takes(&self, received: &Received) -> bool {
        match (self, received) {
            (Self::Any, _) | (Self::Children, Received::ChildEnded { .. }) => true,
            (Self::Signals(names), Received::Signal { name, .. }) => names.contains(&name.as_str()),
            _ => false,
        }
    }
}

impl Received {
    /// The part of a message that is for the workflow; `None`: the message is for the engine.
    pub fn of(body: &MessageBody) -> Option<Self> {
        match body {
            MessageBody::ChildEnded { run, outcome } => {
                Some(Self::ChildEnded { run: run.clone(), outcome: outcome.clone() })
            }
            MessageBody::Signal { name, payload, from, request: _ } => Some(Self::Signal {
                name: name.clone(),
                payload: payload.clone(),
                from: from.clone(),
            }),
            _ => None,
        }
    }
}

/// A child run to start.
#[derive(Debug, Clone, PartialEq)]
pub struct Child {
    /// Its id. Starting an id that exists joins that run.
    pub run: RunId,
    /// Its workflow.
    pub workflow: &'static str,
    /// Its input.
    pub input: Payload,
    /// Labels for people and filters. They override equal labels of the parent run. Replay does not
    /// compare them.
    pub labels: BTreeMap<String, String>,
}

/// The commands of a workflow. Use the typed forms of [`ContextExt`] where there is one.
#[async_trait]
pub trait Context: Send {
    /// The run that this is.
    fn run(&self) -> &RunId;

    /// The number of commands answered in this segment: a reason to continue as new.
    fn commands(&self) -> u32;

    /// Calls several activities at once and waits for all of them; results in the order of the
    /// calls.
    async fn call_all(&mut self, calls: Vec<Call>) -> Result<Vec<Result<Payload, Failure>>, Stop>;

    /// Starts a child run. Its outcome arrives as a message.
    async fn start(&mut self, child: Child) -> Result<(), Stop>;

    /// The next message that the filter takes; `None` if none came in time.
    async fn receive(
        &mut self,
        filter: &Filter,
        timeout: Option<Duration>,
    ) -> Result<Option<Received>, Stop>;

    /// The next message that the filter takes, if one is there.
    async fn try_receive(&mut self, filter: &Filter) -> Result<Option<Received>, Stop>;

    /// Puts a signal into the mailbox of another run.
    async fn send(&mut self, to: RunId, name: &str, payload: Payload) -> Result<(), Stop>;

    /// Requests the cancellation of another run. No effect on a run that is over or was cancelled
    /// before: `Stop::Cancelled` reaches a workflow once, so that it can end its work.
    async fn cancel(&mut self, run: RunId, request: RequestedBy) -> Result<(), Stop>;

    /// Waits, durably.
    async fn sleep(&mut self, duration: Duration) -> Result<(), Stop>;

    /// The time, as recorded.
    async fn now(&mut self) -> Result<DateTime<Utc>, Stop>;

    /// A unique id, as recorded.
    async fn uuid(&mut self) -> Result<Uuid, Stop>;

    /// The version of a change that this run follows: `latest` for a run that gets here for the
    /// first time, 0 for a history recorded before the change existed.
    async fn version(&mut self, change: &str, latest: u32) -> Result<u32, Stop>;

    /// Publishes a value under a key, for others to read; `null` removes it.
    async fn publish(&mut self, key: &str, value: Payload) -> Result<(), Stop>;
}

/// The results of a command, one for each call: an engine may be implemented outside of this crate.
fn checked<T>(calls: usize, results: Vec<T>) -> Result<Vec<T>, EngineFault> {
    if results.len() == calls {
        return Ok(results);
    }
    Err(EngineFault::WrongResults { calls, results: results.len() })
}

/// The commands with types.
#[async_trait]
pub trait ContextExt: Context {
    /// Calls one activity. A failure for good is `Stop::Failed`.
    async fn call<A: Activity>(&mut self, input: A::Input) -> Result<A::Output, Stop> {
        let call = Call::of::<A>(&input);
        let results = checked(1, self.call_all(vec![call]).await?)?;
        let output: Result<Vec<Payload>, Failure> = results.into_iter().collect();
        Ok(output?[0].read()?)
    }

    /// Calls one activity with several inputs at once; results in the order of the inputs.
    async fn all<A: Activity>(
        &mut self,
        inputs: &[A::Input],
    ) -> Result<Vec<Result<A::Output, Failure>>, Stop> {
        let calls = inputs.iter().map(Call::of::<A>).collect();
        let results = checked(inputs.len(), self.call_all(calls).await?)?;
        let read = |result: Result<Payload, Failure>| match result {
            Ok(output) => Ok(Ok(output.read()?)),
            Err(failure) => Ok(Err(failure)),
        };
        results.into_iter().map(read).collect()
    }

    /// Sends a signal with a value.
    async fn signal<T: Serialize + Sync>(
        &mut self,
        to: RunId,
        name: &str,
        value: &T,
    ) -> Result<(), Stop> {
        self.send(to, name, Payload::of(value)).await
    }

    /// Publishes a value.
    async fn set<T: Serialize + Sync>(&mut self, key: &str, value: &T) -> Result<(), Stop> {
        self.publish(key, Payload::of(value)).await
    }
}

impl<C: Context + ?Sized> ContextExt for C {}
