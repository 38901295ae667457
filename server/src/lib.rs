//! The service over an open log. It contains all queries and all actions on runs; the command line
//! and later transports call it.
//!
//! A [`Client`] reaches the service: in the process that owns the log, through its unix socket, or
//! by opening a log at rest.

pub mod advice;
mod batches;
mod begin;
mod client;
mod deliver;
mod dispatch;
pub mod document;
mod due;
mod edited;
mod error;
mod head;
mod held;
pub mod leftovers;
mod list_file;
mod listener;
mod lock_state;
mod lock_wait;
mod maintenance;
mod open;
mod order;
mod owner;
mod ownership;
mod perform;
mod pools;
mod project;
pub mod pruned;
mod questions;
mod refused;
pub mod request;
mod restart;
mod rewind;
mod run_kind;
pub mod schema;
mod served;
mod service;
pub mod settled;
mod signals;
mod socket;
pub mod status;
mod steering;
mod stuck;
pub mod views;
mod watch;

pub use batches::{BatchStanding, BatchStatus, SubmitBatch, Submitted};
pub use begin::{Begin, ProjectStatus, is_copy};
pub use client::Client;
pub use deliver::{Delivered, Receiver, Reconcile, SendSignal};
pub use due::{Due, ShowDue};
pub use error::{Error, Gone, Result};
pub use list_file::{
    ImportOutcome, ImportSource, ListFile, add_feature, import_features, is_same, write,
};
pub use listener::Listener;
pub use lock_state::LockState;
pub use lock_wait::Notify;
pub use maintenance::{
    Check, Export, Exported, Import, Imported, InspectPages, Pages, Prune, Pruned, PrunedRun,
    Unfinished, UnfinishedRuns, UnusedPayloads,
};
pub use open::{Limits, SetLimits, open, workflows};
pub use order::Order;
pub use owner::Owner;
pub use perform::Perform;
pub use project::{Project, check as check_project, is_operational, restore_checkouts};
pub use questions::{AnswerQuestion, Answered};
pub use refused::{refuse_out_of_reach, refuse_within_session};
pub use request::{Request, RequestError};
pub use rewind::{
    Fork, ForkPoint, Forked, ListCheckpoints, RewindPoint, RollBack, RolledBack, TakeCheckpoint,
    TakenCheckpoint,
};
pub use run_kind::RunKind;
pub use served::TakeUpEdits;

pub use service::Service;
pub use steering::Steer;
pub use stuck::StuckRuns;
pub use watch::Watch;
