//! Backlog files: conversion between text and features, without I/O.
//!
//! Read in this order: [`list`] (`feature_list.json` in the shapes found in the wild), [`tasks_md`]
//! (checklists in Markdown), [`import`] and [`export`] (backlogs of other tools). The features
//! themselves and their graph are in `longhaul_workflows::backlog`.

pub mod error;
pub mod export;
pub mod import;
mod json;
pub mod list;
pub mod tasks_md;

pub use error::{ListError, Problem, Repair};
pub use list::{Addition, Difference, EntryState, FeatureList, Update};
pub use tasks_md::{TaskList, read_tasks};
