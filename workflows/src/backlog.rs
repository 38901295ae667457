//! The backlog: the features of a project, and the choice of the next one.
//!
//! Read in this order: [`feature`] (one feature), [`graph`] (scheduling). The crate
//! `longhaul-backlog` reads and writes backlog files.

pub mod error;
pub mod feature;
pub mod graph;

pub use error::{BacklogError, Cycle};
pub use feature::{Check, Feature, FeatureId, FeatureStatus, InvalidFeatureId};
pub use graph::{Backlog, Block, BlockCause, Changes, Counts, FeatureState, cycles};
