//! Processes: nothing is left behind, nothing is paid twice, and what happened is told.

#![expect(clippy::unwrap_used, reason = "the helpers of tests may panic as the tests do")]

mod checks;
#[cfg(target_os = "linux")]
mod owner;
mod running;
#[cfg(target_os = "linux")]
mod sandbox;
mod session;
mod setup;
mod support;
mod trees;
