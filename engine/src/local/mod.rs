//! The port over an event log: one activation of a run in this process.

mod activation;
mod attempt;
mod calls;
mod inbox;
mod join;
mod perform;
mod pools;
mod terminate;
mod wait;
mod write;

pub(crate) use activation::{Activation, Retirement};
pub use attempt::Emitted;
pub(crate) use inbox::Inbox;
pub(crate) use pools::Pools;
pub use pools::{Prefetch, Share};
