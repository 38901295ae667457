//! The functions that can be called in an expression.

use crate::error::Error;

/// Calls a function by its name.
pub fn call(name: &str, _arguments: &[f64]) -> Result<f64, Error> {
    Err(Error::not_implemented(name))
}
