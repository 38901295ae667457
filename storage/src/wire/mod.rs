//! What records say: frozen types, apart from the engine's, and the conversions both ways.

pub(crate) mod pack;
pub(crate) mod unpack;
pub(crate) mod v1;

#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod golden;
