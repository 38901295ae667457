//! What the tests stand on: a clock that they hold, a store that dies when told to, workflows and activities as closures.

pub mod clock;
pub mod dying;
pub mod script;
