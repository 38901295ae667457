//! The lines that were entered before.

use crate::error::Error;

/// The last lines, up to a limit.
#[derive(Debug, Clone)]
pub struct History {}

impl History {
    /// An empty history that keeps at most `limit` lines.
    pub fn new(_limit: usize) -> Self {
        Self {}
    }

    /// Remembers a line.
    pub fn push(&mut self, _line: &str) {}

    /// The lines that it holds with their numbers, the oldest first.
    pub fn lines(&self) -> Vec<(usize, String)> {
        Vec::new()
    }

    /// The line that is meant: `!!` is the last one, `!3` the third, any other line itself.
    pub fn recall(&self, _line: &str) -> Result<String, Error> {
        Err(Error::not_implemented("history"))
    }
}
