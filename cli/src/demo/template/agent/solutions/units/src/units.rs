//! Conversion of units.

use crate::error::Error;
use crate::numbers;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Length,
    Mass,
    Time,
}

/// Each unit in the first one of its kind.
const UNITS: [(&str, Kind, f64); 15] = [
    ("m", Kind::Length, 1.0),
    ("mm", Kind::Length, 0.001),
    ("cm", Kind::Length, 0.01),
    ("km", Kind::Length, 1000.0),
    ("in", Kind::Length, 0.0254),
    ("ft", Kind::Length, 0.3048),
    ("mi", Kind::Length, 1609.344),
    ("kg", Kind::Mass, 1.0),
    ("g", Kind::Mass, 0.001),
    ("oz", Kind::Mass, 0.028_349_523_125),
    ("lb", Kind::Mass, 0.453_592_37),
    ("s", Kind::Time, 1.0),
    ("min", Kind::Time, 60.0),
    ("h", Kind::Time, 3600.0),
    ("d", Kind::Time, 86400.0),
];

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
    let amount = match amount.strip_prefix('-') {
        Some(amount) => -numbers::parse(amount).ok()?,
        None => numbers::parse(amount).ok()?,
    };
    Some(Request {
        amount,
        from: from.to_owned(),
        to: to.to_owned(),
    })
}

/// Converts an amount of one unit to another of the same kind.
pub fn convert(request: &Request) -> Result<f64, Error> {
    let (from_kind, from) = unit(&request.from)?;
    let (to_kind, to) = unit(&request.to)?;
    if from_kind != to_kind {
        return Err(Error::new(format!(
            "{} cannot be told in {}",
            request.from, request.to
        )));
    }
    Ok(request.amount * from / to)
}

fn unit(name: &str) -> Result<(Kind, f64), Error> {
    let found = UNITS.iter().find(|(unit, ..)| *unit == name);
    let found = found.ok_or_else(|| Error::new(format!("there is no unit `{name}`")))?;
    Ok((found.1, found.2))
}
