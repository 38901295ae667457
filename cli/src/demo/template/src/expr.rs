//! The tree of an expression.

use std::fmt;

/// What stands between two values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    Power,
}

/// An expression. `at` is the place of the name or of the operator in the line.
#[derive(Debug, Clone, PartialEq)]
pub enum Expr {
    Number(f64),
    Variable {
        name: String,
        at: usize,
    },
    Negate(Box<Expr>),
    Binary {
        left: Box<Expr>,
        operator: Operator,
        at: usize,
        right: Box<Expr>,
    },
    Call {
        name: String,
        arguments: Vec<Expr>,
        at: usize,
    },
}

impl Operator {
    /// The operator that is written so.
    pub fn of_symbol(symbol: char) -> Option<Self> {
        Some(match symbol {
            '+' => Self::Add,
            '-' => Self::Subtract,
            '*' => Self::Multiply,
            '/' => Self::Divide,
            '%' => Self::Remainder,
            '^' => Self::Power,
            _ => return None,
        })
    }

    /// How it is written.
    pub fn symbol(self) -> char {
        match self {
            Self::Add => '+',
            Self::Subtract => '-',
            Self::Multiply => '*',
            Self::Divide => '/',
            Self::Remainder => '%',
            Self::Power => '^',
        }
    }
}

/// With all parentheses, so that one sees what was understood: `(1 + (2 * 3))`.
impl fmt::Display for Expr {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(value) => write!(formatter, "{value}"),
            Self::Variable { name, .. } => formatter.write_str(name),
            Self::Negate(inner) => write!(formatter, "(-{inner})"),
            Self::Binary {
                left,
                operator,
                right,
                ..
            } => {
                write!(formatter, "({left} {} {right})", operator.symbol())
            }
            Self::Call {
                name, arguments, ..
            } => {
                let arguments: Vec<_> = arguments.iter().map(Self::to_string).collect();
                write!(formatter, "{name}({})", arguments.join(", "))
            }
        }
    }
}
