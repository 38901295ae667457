//! The value of an expression.

use crate::error::Error;
use crate::expr::{Expr, Operator};
use crate::functions;
use crate::variables::Variables;

/// Works out an expression.
pub fn evaluate(expr: &Expr, variables: &Variables) -> Result<f64, Error> {
    match expr {
        Expr::Number(value) => Ok(*value),
        Expr::Variable { name, at } => variables
            .get(name)
            .ok_or_else(|| Error::at(*at, format!("`{name}` has no value"))),
        Expr::Negate(inner) => Ok(-evaluate(inner, variables)?),
        Expr::Binary {
            left,
            operator,
            right,
            ..
        } => Ok(apply(
            evaluate(left, variables)?,
            *operator,
            evaluate(right, variables)?,
        )),
        Expr::Call {
            name,
            arguments,
            at,
        } => {
            let arguments = arguments
                .iter()
                .map(|argument| evaluate(argument, variables));
            let arguments = arguments.collect::<Result<Vec<f64>, Error>>()?;
            functions::call(name, &arguments).map_err(|error| Error::at(*at, error.message))
        }
    }
}

fn apply(left: f64, operator: Operator, right: f64) -> f64 {
    match operator {
        Operator::Add => left + right,
        Operator::Subtract => left - right,
        Operator::Multiply => left * right,
        Operator::Divide => left / right,
        Operator::Remainder => left % right,
        Operator::Power => left.powf(right),
    }
}
