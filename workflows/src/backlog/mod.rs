//! The backlog: the features of a project, and which of them is next.
//!
//! Read in this order: [`feature`] (one entry), [`graph`] (what can be worked on now). The files
//! that hold a backlog are read and written by the crate `longhaul-backlog`.

pub mod error;
pub mod feature;
pub mod graph;

pub use error::BacklogError;
pub use feature::{Check, Feature, FeatureId, FeatureStatus, InvalidFeatureId};
pub use graph::{Backlog, Changes, Counts, FeatureState};
