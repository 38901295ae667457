//! The service over an open log. Everything that reads a log for a person or acts on its runs is here; the command line
//! and later transports call it.
//!
//! A [`Client`] reaches the service: in the process that owns the log, through its unix socket, or by opening a
//! log at rest.

#![expect(missing_docs, reason = "fields whose names say all; the schemas of documents describe the others")]

mod batches;
mod client;
pub mod document;
mod error;
mod held;
pub mod leftovers;
mod listener;
mod lock_state;
mod lock_wait;
mod maintenance;
mod open;
mod order;
mod overlay;
mod ownership;
mod pending;
pub mod pruned;
mod refused;
mod restart;
mod rewind;
pub mod schema;
mod select;
mod served;
mod service;
pub mod settled;
mod socket;
pub mod status;
mod steering;
mod stuck;
pub mod views;

pub use batches::BatchStanding;
pub use client::{Client, Notify};
pub use error::{Error, Result};
pub use listener::Listener;
pub use lock_state::LockState;
pub use maintenance::{Carried, Errand, Imported, PrunedRun};
pub use open::{Limits, open, workflows};
pub use order::Order;
pub use rewind::{Again, From, Report, Row};
pub use select::{Filter, without_covered};
pub use service::{Answer, Ask, Service, is_copy};
pub use socket::Gone;
