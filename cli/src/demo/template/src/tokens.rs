//! A line, cut into tokens.

use crate::error::Error;

/// A piece of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Token {
    /// A number as it was written.
    Number(String),
    /// A name of a variable or of a function.
    Name(String),
    /// One of `+ - * / % ^ ( ) , =`.
    Symbol(char),
}

/// A token and its place in the line, in characters from the beginning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placed {
    pub token: Token,
    pub at: usize,
}

/// Cuts a line into tokens.
pub fn tokenize(_line: &str) -> Result<Vec<Placed>, Error> {
    Err(Error::not_implemented("tokens"))
}
