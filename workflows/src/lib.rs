//! The workflows of Longhaul, as pure decisions: no clock, no disk, no process, no network.
//!
//! Read in this order: [`feature`] (the work on a feature), [`project`] (scheduling and merge
//! order), [`batch`] (many projects), [`backlog`] (the DAG), [`contracts`] (the activities),
//! [`settings`] (the configuration of a project).

pub mod backlog;
pub mod batch;
pub mod contracts;
pub mod feature;
pub mod finding;
pub mod narrative;
mod note;
pub mod project;
pub mod projection;
pub mod prompt;
pub mod resources;
pub mod session;
pub mod settings;
mod text;
