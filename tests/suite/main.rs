//! The tests of Longhaul that need more than one of its parts, by concern.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed, as it should")]

mod activities;
mod again;
mod asked;
mod batch;
mod births;
mod carry;
mod command_line;
mod crash;
mod cut_off;
mod differs;
mod golden;
mod import;
mod kill;
mod locks;
mod look;
mod moved;
mod names;
mod parked;
mod pauses;
mod pipes;
mod project_crash;
mod replay;
mod rest;
mod runs;
mod sandbox;
mod setups;
mod steer;
mod terminate;
mod tidy;
mod verbs;
mod world;
mod wrong_place;
