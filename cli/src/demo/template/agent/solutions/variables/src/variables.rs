//! Variables and constants.

use std::collections::BTreeMap;
use std::f64::consts;

use crate::error::Error;
use crate::tokens::{Token, tokenize};

const CONSTANTS: [(&str, f64); 3] = [("pi", consts::PI), ("e", consts::E), ("tau", consts::TAU)];

/// The values of all names.
#[derive(Debug, Clone, Default)]
pub struct Variables {
    values: BTreeMap<String, f64>,
}

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
    pub fn get(&self, name: &str) -> Option<f64> {
        constant(name).or_else(|| self.values.get(name).copied())
    }

    /// Sets a variable. Constants stay what they are.
    pub fn set(&mut self, name: &str, value: f64) -> Result<(), Error> {
        if constant(name).is_some() {
            return Err(Error::new(format!("`{name}` is a constant")));
        }
        self.values.insert(name.to_owned(), value);
        Ok(())
    }

    /// All variables that were set, sorted by name.
    pub fn all(&self) -> Vec<(String, f64)> {
        self.values
            .iter()
            .map(|(name, value)| (name.clone(), *value))
            .collect()
    }
}

fn constant(name: &str) -> Option<f64> {
    CONSTANTS
        .iter()
        .find(|(constant, _)| *constant == name)
        .map(|(_, value)| *value)
}

/// The assignment in a line, if it is one.
pub fn assignment(line: &str) -> Result<Option<Assignment>, Error> {
    let tokens = tokenize(line)?;
    let Some(equals) = tokens
        .iter()
        .position(|placed| placed.token == Token::Symbol('='))
    else {
        return Ok(None);
    };
    let at = tokens[equals].at;
    match &tokens[..equals] {
        [name] if matches!(name.token, Token::Name(_)) => {
            let Token::Name(name) = name.token.clone() else {
                return Ok(None);
            };
            let expression = " ".repeat(at + 1) + &line.chars().skip(at + 1).collect::<String>();
            Ok(Some(Assignment { name, expression }))
        }
        _ => Err(Error::at(at, "only a single name can stand before `=`")),
    }
}
