//! JSON document of `longhaul feature import`.

use longhaul_backlog::import::{
    DroppedPart, Item, KeptKey, KnownItem, MappedKey, Place, PriorityOrder,
};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::report::Report;

/// The result of an import.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::command) struct ImportDocument<'a> {
    /// The file, or `standard input`.
    file: &'a str,
    /// The list of the project.
    list: String,
    /// The format of the file, as in `--as`.
    shape: String,
    /// The order of the numbers in `priority`, as in `--priority`.
    #[serde(skip_serializing_if = "Option::is_none")]
    priority: Option<&'a str>,
    /// Whether it was a dry run.
    dry_run: bool,
    /// How many entries the file has.
    entries: usize,
    /// The features that were added, or would be with a dry run.
    added: Vec<Added<'a>>,
    /// Keys that were read into a field.
    mapped: &'a [MappedKey],
    /// Keys that are kept in addition to the fields.
    kept_extra: Vec<&'a KeptKey>,
    /// Data that is not imported.
    not_mapped: Vec<&'a DroppedPart>,
    /// Entries of the project's list that took over what differs, or would with a dry run.
    updated: Vec<SkippedLine<'a>>,
    /// Entries with an id that the project's list has.
    skipped: Vec<SkippedLine<'a>>,
    /// Guesses and conversions, one sentence each.
    notes: &'a [String],
}

/// A feature.
#[derive(Debug, Serialize, JsonSchema)]
struct Added<'a> {
    /// Its id in the list of the project.
    id: &'a str,
    /// Its name.
    name: &'a str,
    /// Whether the file claims that it passes.
    claimed_passes: bool,
    #[serde(flatten)]
    place: &'a Place,
}

/// An entry that the project's list has already.
#[derive(Debug, Serialize, JsonSchema)]
struct SkippedLine<'a> {
    /// The id.
    id: &'a str,
    /// Why it was skipped or updated.
    reason: &'a str,
    /// The fields that differ there.
    differs: &'a [&'static str],
    #[serde(flatten)]
    place: &'a Place,
}

impl<'a> Report<'a> {
    /// The report as JSON.
    pub(super) fn document(&self) -> ImportDocument<'a> {
        let Report { imported, merged, .. } = *self;
        let line = |reason: &'a str, known: &'a KnownItem| SkippedLine {
            id: known.id.as_str(),
            reason,
            differs: &known.differs,
            place: &imported.items[known.item].place,
        };
        let skipped = "its id is in the project's list already";
        let skipped = merged.skipped.iter().map(|known| line(skipped, known));
        let updated = merged.updated.iter().map(|known| line("it differed", known));
        ImportDocument {
            file: self.file,
            list: self.list.display().to_string(),
            shape: imported.shape.to_string(),
            priority: imported.priority.map(PriorityOrder::name),
            dry_run: self.dry_run,
            entries: imported.items.len(),
            added: self.added().map(Added::of).collect(),
            mapped: &imported.mapped,
            kept_extra: self.kept().into_iter().chain(&merged.kept_keys).collect(),
            not_mapped: self.not_mapped().collect(),
            updated: updated.collect(),
            skipped: skipped.collect(),
            notes: &imported.notes,
        }
    }
}

impl<'a> Added<'a> {
    fn of(item: &'a Item) -> Self {
        let Item { feature, place, extra } = item;
        let claimed_passes =
            extra.get("claimed_passes").and_then(Value::as_bool).unwrap_or_default();
        Self { id: feature.id.as_str(), name: &feature.name, claimed_passes, place }
    }
}
