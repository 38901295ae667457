//! Conversion of units.

use crate::error::Error;
use crate::numbers;

/// A line such as `5 km to mi`.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    pub amount: f64,
    pub from: String,
    pub to: String,
}

/// The request in a line, if it is one.
pub fn request(line: &str) -> Option<Request> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [amount, from, "to", to] = words[..] else {
        return None;
    };
    let amount = numbers::parse(amount).ok()?;
    Some(Request {
        amount,
        from: from.to_owned(),
        to: to.to_owned(),
    })
}

/// Converts an amount of one unit to another.
pub fn convert(request: &Request) -> Result<f64, Error> {
    match (request.from.as_str(), request.to.as_str()) {
        ("km", "m") => Ok(request.amount * 1000.0),
        ("m", "km") => Ok(request.amount / 1000.0),
        _ => Err(Error::new("only km and m for now")),
    }
}
