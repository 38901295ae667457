//! What Longhaul does, as pure decisions: no clock, no disk, no process, no network.
//!
//! Read in this order: [`feature`] (what happens to a feature), [`project`] (which feature is next,
//! whose turn it is to merge), [`batch`] (many projects), [`backlog`] (the DAG), [`contracts`]
//! (what may be asked of the world), [`settings`] (what a project chooses).

pub mod backlog;
pub mod batch;
pub mod contracts;
pub mod feature;
pub mod finding;
pub mod narrative;
pub mod project;
pub mod projection;
pub mod prompt;
pub mod settings;
