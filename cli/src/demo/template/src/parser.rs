//! From a line to the tree of its expression.

use crate::error::Error;
use crate::expr::Expr;

/// Reads an expression.
pub fn parse(_line: &str) -> Result<Expr, Error> {
    Err(Error::not_implemented("parser"))
}
