//! The embedded engine: which runs are in memory, and what wakes the others.

mod drive;
mod engine;
mod reservation;
mod shared;
mod timers;

pub use engine::{Change, Engine, Options, Parts};
pub(crate) use shared::Shared;
