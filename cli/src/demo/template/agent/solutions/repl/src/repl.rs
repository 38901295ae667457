//! Line in, answer out.

use crate::commands;
use crate::error::Error;
use crate::eval::evaluate;
use crate::history::History;
use crate::numbers;
use crate::parser::parse;
use crate::units;
use crate::variables::{Variables, assignment};

/// A session at the calculator.
#[derive(Debug)]
pub struct Repl {
    variables: Variables,
    history: History,
    precision: usize,
}

impl Repl {
    /// A fresh session.
    pub fn new(precision: usize) -> Self {
        Self {
            variables: Variables::default(),
            history: History::new(100),
            precision,
        }
    }

    /// Answers one line; a blank line has no answer.
    pub fn answer(&mut self, line: &str) -> Result<Option<String>, Error> {
        let line = self.history.recall(line)?;
        if line.trim().is_empty() {
            return Ok(None);
        }
        if line.trim_start().starts_with(':') {
            return commands::run(&line, &self.variables, &self.history).map(Some);
        }
        self.history.push(&line);
        let value = self.value(&line)?;
        self.variables.set("ans", value)?;
        Ok(Some(numbers::format(value, self.precision)))
    }

    fn value(&mut self, line: &str) -> Result<f64, Error> {
        if let Some(request) = units::request(line) {
            return units::convert(&request);
        }
        let Some(assignment) = assignment(line)? else {
            return evaluate(&parse(line)?, &self.variables);
        };
        let value = evaluate(&parse(&assignment.expression)?, &self.variables)?;
        self.variables.set(&assignment.name, value)?;
        Ok(value)
    }
}
