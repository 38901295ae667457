//! Every verb: what it says to people and to programs, how it ends, on a narrow terminal and on none.

mod schemas;
