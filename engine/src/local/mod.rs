//! The port over an event log: one life of a run in this process.

mod attempt;
mod calls;
mod inbox;
mod life;
mod perform;
mod pools;
mod terminate;
mod wait;
mod write;

pub(crate) use inbox::Inbox;
pub(crate) use life::{Life, Retirement};
pub(crate) use pools::Pools;
pub use pools::Share;
