//! What `reckon` is judged by: one module for each feature of `feature_list.json`.

mod carets;
mod eval;
mod functions;
mod history;
mod numbers;
mod options;
mod parser;
mod repl;
mod table;
mod tokens;
mod units;
mod variables;
