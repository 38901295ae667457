//! Imports backlogs of other tools as features, and reports the keys that are kept or lost.
//!
//! Read in this order: `source` (text to JSON, XML or Markdown), `detect` (finds the shape),
//! `lists`, `markdown` and one file for each other shape, `entry` and `intake` (shared by all
//! shapes), `merge` (into the list of a project). No imported feature passes: a `passes` is kept as
//! a claim.

mod beads;
mod claim;
mod detect;
mod entry;
mod error;
mod github;
mod intake;
mod junit;
mod lists;
mod markdown;
mod merge;
mod place;
mod priority;
mod shape;
mod source;
mod task_master;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use intake::Intake;
use longhaul_workflows::backlog::{Feature, FeatureId};
use source::Source;

pub use crate::list::PriorityOrder;
pub use error::ImportError;
pub use merge::{KnownItem, Merged, merge};
pub use place::Place;
pub use shape::Shape;
pub use source::decode;

pub(super) use beads::{
    BLOCKING, KEPT_PRIORITY, beads_priority, criteria_of_beads, text_of_criteria,
};
pub(super) use claim::CLAIMED_STATUS;

/// Options of an import.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options<'a> {
    /// The shape; detected if `None`.
    pub shape: Option<Shape>,
    /// The list to import from a file with several: a tag of Task Master.
    pub tag: Option<&'a str>,
    /// The order of priority numbers; detected if `None`.
    pub priority: Option<PriorityOrder>,
    /// Drop dependencies on entries that are neither in the file nor in the list.
    pub drop_dangling: bool,
    /// Give entries with an invalid or a taken id another one.
    pub rename_ids: bool,
    /// Existing features, which entries may depend on.
    pub known: &'a [Feature],
}

/// A backlog of another tool as features.
#[derive(Debug, Clone, PartialEq)]
pub struct Imported {
    /// The detected shape.
    pub shape: Shape,
    /// In the file's order.
    pub items: Vec<Item>,
    /// The order of the priority numbers, if there are any.
    pub priority: Option<PriorityOrder>,
    /// Unread keys of the list as a whole.
    pub list_keys: Vec<(Place, String, Value)>,
    /// Keys that were read into fields.
    pub mapped: Vec<MappedKey>,
    /// Unread keys of entries, which are kept.
    pub kept_extra: Vec<KeptKey>,
    /// Dropped parts.
    pub not_mapped: Vec<DroppedPart>,
    /// Guesses and conversions, one sentence each.
    pub notes: Vec<String>,
}

/// One imported entry.
#[derive(Debug, Clone, PartialEq)]
pub struct Item {
    /// Its place in the file.
    pub place: Place,
    /// Its fields. `passes` is false; the status is a claim.
    pub feature: Feature,
    /// Unread keys, as they are written into the list.
    pub extra: Map<String, Value>,
}

/// A key that was read into a field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct MappedKey {
    /// The key.
    pub from: String,
    /// The field.
    pub to: String,
    /// The number of entries with this key.
    pub entries: usize,
}

/// An unread key of an entry, which is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct KeptKey {
    /// Its place in the file.
    #[serde(flatten)]
    pub place: Place,
    /// The feature of its entry; absent for a key of the list as a whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<FeatureId>,
    /// The key.
    pub key: String,
    /// Its name in the project's list; another one if the same name has a meaning there.
    pub kept_as: String,
    /// Why it is not read into a field.
    pub reason: String,
}

/// A dropped part of the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DroppedPart {
    /// Its place in the file.
    #[serde(flatten)]
    pub place: Place,
    /// A description of it.
    pub what: String,
    /// Why it is dropped.
    pub reason: String,
}

/// Reads a backlog.
///
/// Refuses text of an unknown or ambiguous shape, invalid syntax, and invalid entries: one error
/// lists all of them.
pub fn read(text: &str, options: &Options<'_>) -> Result<Imported, ImportError> {
    let source = Source::of(text, options.shape.map(|shape| detect::rule(shape).syntax))?;
    let shape = match options.shape {
        Some(shape) => shape,
        None => detect::shape_of(&source)?,
    };
    let mut intake = Intake::new(options);
    (detect::rule(shape).read)(&source, &mut intake)?;
    intake.finish(shape)
}
