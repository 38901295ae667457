//! Tests of the event log, from outside.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod archive;
mod check;
mod common;
mod conformance;
mod damage;
mod kill;
#[cfg(target_os = "linux")]
mod power_cut;
mod reopen;
