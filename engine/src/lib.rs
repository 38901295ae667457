//! The rules of durable execution. Knows no agent, no disk, no git, no HTTP.
//!
//! A workflow is deterministic code that reaches the world through one trait, [`Context`]. Each
//! command is answered from the history of its run, or performed, recorded and then answered. After
//! a crash the code runs again from the start of the last segment (the events since the run last
//! continued as new), and reaches the first unrecorded command without repeating an effect.
//!
//! Read in this order: [`event`] (the record), [`context`] (the commands of workflow code),
//! `command` and `replay` (why a crash loses nothing), `replaying_context` (both together),
//! `executor` (which performs the rest), [`store`] (the guarantees of a log).

pub mod activity;
pub mod client;
pub mod clock;
mod command;
pub mod context;
mod cut;
mod describe;
mod diverged;
pub mod event;
mod executor;
pub mod failure;
pub mod fault;
pub mod id;
pub mod payload;
pub mod policy;
mod replay;
mod replaying_context;
mod segment_end;
pub mod store;
pub mod summary;
pub mod verify;
pub mod workflow;

pub use activity::{Activity, Attempt, Call, ErasedHandler, Handler, Handlers, Probe, Worker};
pub use client::{Client, NewRun, Started};
pub use clock::{Clock, SystemClock};
pub use context::{Child, Context, ContextExt, EngineError, Filter, Received, Stop};
pub use cut::cut;
pub use diverged::Diverged;
pub use event::{
    CommandDigest, Event, EventKind, Message, MessageBody, Outcome, RequestedBy, UnknownEffect,
};
pub use executor::{Change, Engine, Options, Parts, Prefetch, Share};
pub use failure::{Failure, FailureKind};
pub use fault::EngineFault;
pub use id::{InvalidRunId, MessageSeq, Position, RunId, Slot};
pub use payload::Payload;
pub use policy::{Delays, Effect, Failures, Policy};
pub use store::{EventLog, RunReader, StoreError};
pub use summary::{Pruned, Status, Summary};
pub use verify::verify;
pub use workflow::{Ending, Workflow, Workflows};
