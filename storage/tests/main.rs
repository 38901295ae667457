//! Tests of the event log, from outside.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[macro_use]
mod common;

mod archive;
mod check;
mod conformance;
mod damage;
mod hurt;
mod kill;
mod leftovers;
#[cfg(target_os = "linux")]
mod power_cut;
mod pruned;
mod reopen;
mod salvage;
mod undelivered;
