//! `feature_list.json`: reads the common variants, and writes a list back in its own variant.
//!
//! The document is kept as read. Writing changes single keys, so unknown keys, the order of keys
//! and the shape survive. `shape` locates the list in the document, `entry` converts an entry to a
//! feature.

mod add;
mod compare;
mod criteria;
mod decode;
mod draft;
mod entry;
mod extra;
mod priority_order;
mod read;
mod reader;
mod rename;
mod report;
mod resolve;
mod shape;
mod update;
mod words;
mod write;

use serde_json::Value;

use crate::error::ListError;
use longhaul_workflows::backlog::{Feature, FeatureId};

pub use add::Addition;
pub use compare::Difference;
pub use priority_order::PriorityOrder;
pub use update::Update;
pub use write::EntryState;

pub(super) use add::own_entry;
pub(super) use decode::decode;
pub(super) use draft::{Draft, slug};
pub(super) use entry::name_of_description;
pub(super) use extra::settle_ids;
pub(super) use priority_order::{PRIORITY_ORDER, stated};
pub(super) use read::{draft, field_of_key, is_read, is_whole, no_object, share_check};
pub(super) use report::{Report, shortened};
pub(super) use resolve::{Repairs, Resolved, resolve};
pub(super) use shape::{ENTRY_KEYS, EntriesAt, STORY_KEYS};
pub(super) use update::is_extra;
pub(super) use words::{CLAIMED_PASSES, priority_of_word, status_of_word};

/// A feature list: the original document and its features.
#[derive(Debug, Clone, PartialEq)]
pub struct FeatureList {
    document: Value,
    at: EntriesAt,
    /// One for each entry, in the file's order.
    features: Vec<Feature>,
    notes: Vec<String>,
}

impl FeatureList {
    /// Reads the text of a feature list.
    ///
    /// Refuses invalid JSON, a document without a list, and invalid entries: one error lists all of
    /// them.
    pub fn parse(text: &str) -> Result<Self, ListError> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let document = crate::json::parse(text).map_err(|error| ListError::NotJson {
            line: error.line(),
            column: error.column(),
            reason: bare_reason(&error),
        })?;
        Self::from_document(document)
    }

    /// Reads the content of a file: UTF-8, or UTF-16 with a byte order mark.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, ListError> {
        let text = decode(bytes).map_err(|(_, line)| ListError::NotJson {
            line,
            column: 0,
            reason: "it is neither UTF-8 nor UTF-16 text, or has a NUL character".to_owned(),
        })?;
        Self::parse(&text)
    }

    /// A new list in Longhaul's own shape.
    pub fn create(project_name: &str, features: &[Feature]) -> Result<Self, ListError> {
        let entries: Vec<Value> =
            features.iter().map(|feature| add::own_entry(feature).into()).collect();
        Self::from_document(
            serde_json::json!({ "project_name": project_name, "features": entries }),
        )
    }

    pub(super) fn from_document(document: Value) -> Result<Self, ListError> {
        let at = shape::locate(&document)?;
        let mut report = Report::default();
        let features = read::features(&document, at, &mut report);
        let notes = report.finish()?;
        Ok(Self { document, at, features, notes })
    }

    /// The features in the file's order. Their `status`, `passes` and `last_tested` are claims.
    pub fn features(&self) -> &[Feature] {
        &self.features
    }

    /// The features in the file's order.
    pub fn into_features(self) -> Vec<Feature> {
        self.features
    }

    /// The feature with this id.
    pub fn feature(&self, id: &FeatureId) -> Option<&Feature> {
        self.features.iter().find(|feature| feature.id == *id)
    }

    /// Guesses and conversions while reading, and unread keys; one sentence each.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// The document with all its keys.
    pub fn document(&self) -> &Value {
        &self.document
    }

    /// The text of the file: two spaces per level, a newline at the end.
    pub fn to_text(&self) -> String {
        format!("{:#}\n", self.document)
    }
}

/// The parser's message without the place, which the error contains separately.
pub(super) fn bare_reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.split(" at line ").next().unwrap_or(&text).to_owned()
}

#[cfg(test)]
mod tests;
