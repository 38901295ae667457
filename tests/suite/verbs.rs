//! Every verb: what it says to people and to programs, how it ends, on a narrow terminal and on
//! none, at rest and in use.

mod at_rest;
mod batches;
mod in_use;
mod schemas;
