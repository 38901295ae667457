//! Processes: none is left behind, no work is paid for twice, and results are reported.

#![expect(clippy::unwrap_used, reason = "the helpers of tests may panic as the tests do")]

mod agents;
mod checks;
#[cfg(target_os = "linux")]
mod owner;
mod running;
#[cfg(target_os = "linux")]
mod sandbox;
mod session;
mod setup;
mod support;
mod tools;
mod trees;
