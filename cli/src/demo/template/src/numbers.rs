//! Numbers, read and written.

use crate::error::Error;

/// Reads a number.
pub fn parse(_text: &str) -> Result<f64, Error> {
    Err(Error::not_implemented("numbers"))
}

/// Writes a number with at most `precision` digits after the point.
pub fn format(_value: f64, _precision: usize) -> String {
    "not implemented".to_owned()
}
