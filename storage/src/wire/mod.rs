//! The wire format: frozen types apart from the engine's, and the conversions both ways.
//!
//! Records of the log are bincode of these types, lines of files are JSON of them. They differ in
//! how a payload is represented, and the types are generic over that.

mod convert;
pub(crate) mod json;
pub(crate) mod v1;

#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod golden;
#[cfg(test)]
pub(crate) mod samples;
