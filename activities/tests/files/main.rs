//! The files for people, tested against handwritten logs.

#![expect(clippy::unwrap_used, reason = "the helpers of tests may panic as the tests do")]

mod list;
mod progress_file;
mod reports;
mod story;
mod trouble;
mod world;
