//! The options of the command line.

use crate::error::Error;

/// What was asked for on the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// The one expression to answer; without it lines are read from standard input.
    pub expression: Option<String>,
    /// How many digits to write after the point.
    pub precision: usize,
    /// Whether only the help is wanted.
    pub help: bool,
}

/// Reads the arguments, without the name of the program.
pub fn parse<I, S>(_arguments: I) -> Result<Options, Error>
where
    I: IntoIterator<Item = S>,
    S: Into<String>,
{
    Err(Error::not_implemented("options"))
}

/// The help text.
pub fn help() -> String {
    "not implemented".to_owned()
}
