//! Backlogs of other tools: read as features, with an account of the keys that are kept beside them
//! or lost.
//!
//! Read in this order: `source` (text to JSON, XML or Markdown), `detect` (which shape it is),
//! `lists`, `markdown` and one file for each other shape, `entry` and `intake` (shared by all
//! shapes), `merge` (into the list of a project). Nothing that is imported passes: a claim that it
//! does is kept as one.

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
mod shape;
mod source;
mod task_master;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use intake::Intake;
use longhaul_workflows::backlog::{Feature, FeatureId};
use source::Source;

pub use error::ImportError;
pub use merge::{Merged, Skipped, merge};
pub use place::Place;
pub use shape::Shape;
pub use source::decode;

pub(super) use beads::{
    KEPT_PRIORITY, ORDERS, beads_priority, criteria_of_beads, text_of_criteria,
};
pub(super) use claim::CLAIMED_STATUS;

/// Options of an import.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options<'a> {
    /// The shape; found by looking when none.
    pub shape: Option<Shape>,
    /// Which of several lists in one file is meant: a tag of Task Master.
    pub tag: Option<&'a str>,
    /// Features that are there already, and may be depended on.
    pub known: &'a [Feature],
}

/// A backlog of another tool, as features.
#[derive(Debug, Clone, PartialEq)]
pub struct Imported {
    /// The shape in which it was found.
    pub shape: Shape,
    /// In the file's order.
    pub items: Vec<Item>,
    /// Keys of the list as a whole that mean nothing to Longhaul.
    pub list_keys: Vec<(Place, String, Value)>,
    /// Keys that were read into fields.
    pub mapped: Vec<Mapped>,
    /// Keys of entries that are kept, but not read.
    pub kept_extra: Vec<Kept>,
    /// Parts that are neither read nor kept.
    pub not_mapped: Vec<NotMapped>,
    /// Guesses and translations, one sentence each.
    pub notes: Vec<String>,
}

/// One entry of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Item {
    /// Where it stands.
    pub place: Place,
    /// Its fields. `passes` is false; the status is a claim.
    pub feature: Feature,
    /// Keys without a field, as they are written into the list.
    pub extra: Map<String, Value>,
}

/// A key that was read into a field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Mapped {
    /// The key.
    pub from: String,
    /// The field.
    pub to: String,
    /// In how many entries.
    pub entries: usize,
}

/// A key of an entry that is kept beside the fields.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Kept {
    /// Where it stands.
    #[serde(flatten)]
    pub place: Place,
    /// The feature that its entry became; absent for a key of the list as a whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<FeatureId>,
    /// The key.
    pub key: String,
    /// The key in the project's list; the same one unless that means something else there.
    pub kept_as: String,
    /// Why it is kept beside.
    pub reason: String,
}

/// Something that does not reach the project's list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct NotMapped {
    /// Where it stands.
    #[serde(flatten)]
    pub place: Place,
    /// What it is.
    pub what: String,
    /// Why it is left out.
    pub reason: String,
}

/// Reads a backlog.
///
/// Refuses a text without a known shape or with several, broken text, and wrong entries: one error
/// names all of them.
pub fn read(text: &str, options: &Options<'_>) -> Result<Imported, ImportError> {
    let source = Source::of(text, options.shape)?;
    let shape = match options.shape {
        Some(shape) => shape,
        None => detect::shape_of(&source)?,
    };
    let mut intake = Intake::new(options);
    (shape.rule().read)(&source, &mut intake)?;
    intake.finish(shape)
}
