//! The tests of Longhaul that need more than one of its parts, by concern.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed, as it should")]

mod activities;
mod again;
mod batch;
mod carry;
mod command_line;
mod crash;
mod cut_off;
mod golden;
mod import;
mod kill;
mod look;
mod pipes;
mod project_crash;
mod replay;
mod runs;
mod steer;
mod terminate;
mod tidy;
mod verbs;
mod world;
mod wrong_place;
