//! Line in, answer out.

use crate::error::Error;

/// A session at the calculator.
#[derive(Debug)]
pub struct Repl {}

impl Repl {
    /// A fresh session.
    pub fn new(_precision: usize) -> Self {
        Self {}
    }

    /// Answers one line; a blank line has no answer.
    pub fn answer(&mut self, _line: &str) -> Result<Option<String>, Error> {
        Err(Error::not_implemented("repl"))
    }
}
