//! A calculator for the command line.

pub mod carets;
pub mod commands;
pub mod error;
pub mod eval;
pub mod expr;
pub mod functions;
pub mod history;
pub mod numbers;
pub mod options;
pub mod parser;
pub mod repl;
pub mod table;
pub mod tokens;
pub mod units;
pub mod variables;
