//! Processes: nothing is left behind, nothing is paid twice, and what happened is told.

mod checks;
#[cfg(target_os = "linux")]
mod owner;
mod running;
mod session;
mod setup;
mod support;
mod trees;
