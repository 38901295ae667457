//! What is wrong with a line, and where.

use std::fmt;

/// Something that a person wrote and that cannot be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    /// What is wrong.
    pub message: String,
    /// The place in the line, in characters from its beginning.
    pub at: Option<usize>,
}

impl Error {
    /// An error of the whole line.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            at: None,
        }
    }

    /// An error at one place of the line.
    pub fn at(place: usize, message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            at: Some(place),
        }
    }

    /// The answer of everything that is yet to be written.
    pub fn not_implemented(what: &str) -> Self {
        Self::new(format!("{what}: not implemented"))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl std::error::Error for Error {}
