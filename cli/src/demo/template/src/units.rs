//! Conversion of units.

use crate::error::Error;

/// A line such as `5 km to mi`.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    pub amount: f64,
    pub from: String,
    pub to: String,
}

/// The request in a line, if it is one.
pub fn request(_line: &str) -> Option<Request> {
    None
}

/// Converts an amount of one unit to another.
pub fn convert(_request: &Request) -> Result<f64, Error> {
    Err(Error::not_implemented("units"))
}
