//! The embedded engine: runs of this process over an event log. It decides which runs are in memory
//! and what wakes the others; an [`activation::Activation`] is the `Context` of one run in memory.

mod activation;
mod attempt;
mod calls;
mod drive;
mod engine;
mod inbox;
mod join;
mod perform;
mod pools;
mod record;
mod reservation;
mod shared;
mod terminate;
mod timers;
mod unwritten;
mod wait;
mod write;

pub use engine::{Engine, Parts};
pub use pools::{Prefetch, Share};
pub use shared::{Change, Options};
