//! From a line to the tree of its expression.
//!
//! ```text
//! sum     = product (("+" | "-") product)*
//! product = sign (("*" | "/" | "%") sign)*
//! sign    = "-" sign | power
//! power   = atom ("^" sign)?
//! atom    = number | name | name "(" arguments ")" | "(" sum ")"
//! ```

use crate::error::Error;
use crate::expr::{Expr, Operator};
use crate::numbers;
use crate::tokens::{Placed, Token, tokenize};

/// Reads an expression.
pub fn parse(line: &str) -> Result<Expr, Error> {
    let mut parser = Parser {
        tokens: tokenize(line)?,
        next: 0,
        end: line.trim_end().chars().count(),
    };
    let expr = parser.sum()?;
    match parser.peek() {
        None => Ok(expr),
        Some(_) => Err(parser.unexpected("an operator")),
    }
}

struct Parser {
    tokens: Vec<Placed>,
    next: usize,
    end: usize,
}

impl Parser {
    fn sum(&mut self) -> Result<Expr, Error> {
        self.chain(&['+', '-'], Self::product)
    }

    fn product(&mut self) -> Result<Expr, Error> {
        self.chain(&['*', '/', '%'], Self::sign)
    }

    /// Operators of the same rank, from left to right.
    fn chain(
        &mut self,
        symbols: &[char],
        operand: fn(&mut Self) -> Result<Expr, Error>,
    ) -> Result<Expr, Error> {
        let mut left = operand(self)?;
        while let Some((operator, at)) = self.operator(symbols) {
            let right = operand(self)?;
            left = binary(left, operator, at, right);
        }
        Ok(left)
    }

    fn sign(&mut self) -> Result<Expr, Error> {
        if self.operator(&['-']).is_some() {
            return Ok(Expr::Negate(Box::new(self.sign()?)));
        }
        self.power()
    }

    fn power(&mut self) -> Result<Expr, Error> {
        let base = self.atom()?;
        match self.operator(&['^']) {
            Some((operator, at)) => Ok(binary(base, operator, at, self.sign()?)),
            None => Ok(base),
        }
    }

    fn atom(&mut self) -> Result<Expr, Error> {
        let Some(Placed { token, at }) = self.peek().cloned() else {
            return Err(self.unexpected("a value"));
        };
        match token {
            Token::Number(text) => {
                self.next += 1;
                let value = numbers::parse(&text);
                value
                    .map(Expr::Number)
                    .map_err(|error| Error::at(at, error.message))
            }
            Token::Name(name) => {
                self.next += 1;
                if !self.take('(') {
                    return Ok(Expr::Variable { name, at });
                }
                Ok(Expr::Call {
                    name,
                    arguments: self.arguments()?,
                    at,
                })
            }
            Token::Symbol('(') => {
                self.next += 1;
                let inner = self.sum()?;
                self.expect(')')?;
                Ok(inner)
            }
            Token::Symbol(_) => Err(self.unexpected("a value")),
        }
    }

    fn arguments(&mut self) -> Result<Vec<Expr>, Error> {
        let mut arguments = Vec::new();
        if self.take(')') {
            return Ok(arguments);
        }
        loop {
            arguments.push(self.sum()?);
            if !self.take(',') {
                self.expect(')')?;
                return Ok(arguments);
            }
        }
    }

    fn peek(&self) -> Option<&Placed> {
        self.tokens.get(self.next)
    }

    fn operator(&mut self, symbols: &[char]) -> Option<(Operator, usize)> {
        let Placed {
            token: Token::Symbol(symbol),
            at,
        } = self.peek()?
        else {
            return None;
        };
        let found = symbols
            .contains(symbol)
            .then_some((Operator::of_symbol(*symbol)?, *at))?;
        self.next += 1;
        Some(found)
    }

    fn take(&mut self, symbol: char) -> bool {
        let found = self
            .peek()
            .is_some_and(|placed| placed.token == Token::Symbol(symbol));
        self.next += usize::from(found);
        found
    }

    fn expect(&mut self, symbol: char) -> Result<(), Error> {
        if self.take(symbol) {
            Ok(())
        } else {
            Err(self.unexpected(&format!("`{symbol}`")))
        }
    }

    fn unexpected(&self, wanted: &str) -> Error {
        match self.peek() {
            None => Error::at(self.end, format!("{wanted} is missing at the end")),
            Some(placed) => Error::at(placed.at, format!("{wanted} is missing here")),
        }
    }
}

fn binary(left: Expr, operator: Operator, at: usize, right: Expr) -> Expr {
    Expr::Binary {
        left: Box::new(left),
        operator,
        at,
        right: Box::new(right),
    }
}
