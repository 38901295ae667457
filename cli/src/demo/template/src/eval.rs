//! The value of an expression.

use crate::error::Error;
use crate::expr::Expr;
use crate::variables::Variables;

/// Works out an expression.
pub fn evaluate(_expr: &Expr, _variables: &Variables) -> Result<f64, Error> {
    Err(Error::not_implemented("eval"))
}
