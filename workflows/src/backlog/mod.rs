//! The backlog: the features of a project, the list they are written in, and which of them is next.
//!
//! Read in this order: [`feature`] (one entry), [`graph`] (what can be worked on now), [`list`] (`feature_list.json` in
//! the shapes found in the wild), [`tasks_md`] (checklists in markdown), [`import`] and [`export`] (backlogs of other
//! tools). Text and values in, values and text out.

pub mod error;
pub mod export;
pub mod feature;
pub mod graph;
pub mod import;
pub mod list;
pub mod tasks_md;

pub use error::{BacklogError, Problem};
pub use feature::{Check, Feature, FeatureId, FeatureStatus, InvalidFeatureId};
pub use graph::{Backlog, Changes, Counts, FeatureState};
pub use list::{Addition, Difference, EntryState, FeatureList, FieldEdits};
pub use tasks_md::{TaskList, read_tasks};
