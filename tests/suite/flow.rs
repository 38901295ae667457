//! The workflow of a project under edits, pauses and messages that come at the wrong moment.

mod claims;
mod edits;
mod handoffs;
mod held;
mod merging;
mod messages;
mod other_engine;
mod real;
mod world;
