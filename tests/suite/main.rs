//! The tests of Longhaul that need more than one of its parts, by concern.

mod activities;
mod crash;
mod replay;
mod runs;
