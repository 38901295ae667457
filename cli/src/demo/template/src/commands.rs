//! Lines that begin with a colon.

use crate::error::Error;
use crate::history::History;
use crate::variables::Variables;

/// Answers `:help`, `:vars` and `:history`.
pub fn run(_line: &str, _variables: &Variables, _history: &History) -> Result<String, Error> {
    Err(Error::not_implemented("commands"))
}
