//! Model calls: answers of both protocols, classes of errors, and what outlives a crash.

#![expect(clippy::unwrap_used, reason = "the helpers of tests may panic as the tests do")]

mod answers;
mod errors;
mod kept;
mod secrets;
mod support;
