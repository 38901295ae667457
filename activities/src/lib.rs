//! The hands of Longhaul: the only crate with processes, git, and the files of a project.

pub mod checks;
pub mod confine;
pub mod files;
pub mod git;
pub mod process;
pub mod project;
pub mod session;
