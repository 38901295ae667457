//! The git handlers against real repositories, each in a directory of its own.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on must end")]

mod back;
mod close;
mod concurrency;
mod damage;
mod follow;
mod head;
mod history;
mod killed;
mod land;
mod landed;
mod merge;
mod open;
mod outside;
mod project;
mod refresh;
#[cfg(target_os = "linux")]
mod rights;
mod seal;
mod support;
mod tampering;
mod unusual;
