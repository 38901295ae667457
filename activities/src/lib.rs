//! Longhaul's activities: the only crate with processes, git, and the files of a project.

mod backlog_files;
pub mod checks;
pub mod confine;
mod disk;
pub mod files;
pub mod git;
mod longhaul_toml;
mod machine;
pub mod mcp;
pub mod model;
pub mod nul;
mod obstacle;
pub mod prices;
pub mod process;
pub mod project;
pub mod providers;
pub mod session;
mod settings_file;
pub mod tools;
