//! The tests of Longhaul that need more than one of its parts, by concern.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed, as it should")]

mod activities;
mod crash;
mod replay;
mod runs;
