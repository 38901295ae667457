//! Variables and constants.

use crate::error::Error;

/// The values of all names.
#[derive(Debug, Clone, Default)]
pub struct Variables {}

/// A line such as `x = 1 + 2`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assignment {
    /// The name to be set.
    pub name: String,
    /// The line with blanks in place of the name and the `=`, so that places in it stay what they are.
    pub expression: String,
}

impl Variables {
    /// The value of a name.
    pub fn get(&self, _name: &str) -> Option<f64> {
        None
    }

    /// Sets a variable.
    pub fn set(&mut self, name: &str, _value: f64) -> Result<(), Error> {
        Err(Error::not_implemented(name))
    }

    /// All variables that were set, sorted by name.
    pub fn all(&self) -> Vec<(String, f64)> {
        Vec::new()
    }
}

/// The assignment in a line, if it is one.
pub fn assignment(_line: &str) -> Result<Option<Assignment>, Error> {
    Err(Error::not_implemented("variables"))
}
