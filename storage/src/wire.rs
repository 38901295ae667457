//! The wire format: frozen types, separate from the engine's, and the conversions both ways.
//!
//! Records of the log are bincode of these types, lines of files are JSON of them. They differ in
//! the representation of payloads, so the types are generic over it.

mod convert;
pub(crate) mod json;
pub(crate) mod v1;

#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod golden;
#[cfg(test)]
pub(crate) mod samples;
