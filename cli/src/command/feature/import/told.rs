//! What `longhaul feature import` gives as JSON.

use longhaul_workflows::backlog::import::{Item, Kept, Mapped, NotMapped, Place};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::report::Report;

/// What became of another tool's list.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::command) struct ImportDocument<'a> {
    /// The file, or `standard input`.
    file: &'a str,
    /// The list of the project.
    list: String,
    /// The shape in which the file was read, as `--as` calls it.
    shape: String,
    /// Whether nothing was to be written.
    dry_run: bool,
    /// How many entries the file has.
    entries: usize,
    /// The features that were, or would be, added.
    added: Vec<Added<'a>>,
    /// Keys that were read into a field.
    mapped: Vec<MappedLine<'a>>,
    /// Keys that are kept beside the fields.
    kept_extra: Vec<KeptLine<'a>>,
    /// What does not reach the list of the project.
    not_mapped: Vec<Left<'a>>,
    /// Entries whose id is in the list of the project already.
    skipped: Vec<SkippedLine<'a>>,
    /// What was guessed or translated, one sentence each.
    notes: &'a [String],
}

/// Where something stands in the file.
#[derive(Debug, Serialize, JsonSchema)]
struct Where<'a> {
    /// Counted from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
    /// As in RFC 6901; within the line, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pointer: Option<&'a str>,
}

/// A feature.
#[derive(Debug, Serialize, JsonSchema)]
struct Added<'a> {
    /// Its id in the list.
    id: &'a str,
    /// Its name.
    name: &'a str,
    /// Whether the file says that it passes.
    claimed_passes: bool,
    #[serde(flatten)]
    place: Where<'a>,
}

/// A key that was read into a field.
#[derive(Debug, Serialize, JsonSchema)]
struct MappedLine<'a> {
    /// The key.
    from: &'a str,
    /// The field.
    to: &'a str,
    /// In how many entries.
    entries: usize,
}

/// A key that is kept beside the fields.
#[derive(Debug, Serialize, JsonSchema)]
struct KeptLine<'a> {
    #[serde(flatten)]
    place: Where<'a>,
    /// The feature that its entry became; absent for a key of the list as a whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    /// The key in the file that was read.
    key: &'a str,
    /// The key in the list of the project.
    kept_as: &'a str,
    /// Why it is kept beside.
    reason: &'a str,
}

/// Something that does not reach the list of the project.
#[derive(Debug, Serialize, JsonSchema)]
struct Left<'a> {
    #[serde(flatten)]
    place: Where<'a>,
    /// What it is.
    what: &'a str,
    /// Why it is left out.
    reason: &'a str,
}

/// An entry that is in the list of the project already.
#[derive(Debug, Serialize, JsonSchema)]
struct SkippedLine<'a> {
    /// Its id in the list.
    id: &'a str,
    /// Why it was skipped.
    reason: &'a str,
    /// The fields that say something else there.
    differs: &'a [&'static str],
    #[serde(flatten)]
    place: Where<'a>,
}

impl<'a> Report<'a> {
    /// The report for programs.
    pub(super) fn document(&self) -> ImportDocument<'a> {
        let Report { imported, merged, .. } = *self;
        let skipped = merged.skipped.iter().map(|skipped| SkippedLine {
            id: skipped.id.as_str(),
            reason: "its id is in the project's list already",
            differs: &skipped.differs,
            place: Where::of(&imported.items[skipped.item].place),
        });
        ImportDocument {
            file: self.file,
            list: self.list.display().to_string(),
            shape: imported.shape.to_string(),
            dry_run: self.dry_run,
            entries: imported.items.len(),
            added: self.added().map(Added::of).collect(),
            mapped: imported.mapped.iter().map(MappedLine::of).collect(),
            kept_extra: self
                .kept()
                .into_iter()
                .map(KeptLine::of)
                .chain(merged.kept_keys.iter().map(KeptLine::of_list))
                .collect(),
            not_mapped: self.not_mapped().map(Left::of).collect(),
            skipped: skipped.collect(),
            notes: &imported.notes,
        }
    }
}

impl<'a> Where<'a> {
    fn of(place: &'a Place) -> Self {
        Self { line: place.line, pointer: place.pointer.as_deref() }
    }
}

impl<'a> Added<'a> {
    fn of(item: &'a Item) -> Self {
        let Item { feature, place, extra } = item;
        let claimed_passes = extra.get("claimed_passes").and_then(Value::as_bool).unwrap_or_default();
        Self { id: feature.id.as_str(), name: &feature.name, claimed_passes, place: Where::of(place) }
    }
}

impl<'a> MappedLine<'a> {
    fn of(mapped: &'a Mapped) -> Self {
        Self { from: &mapped.from, to: &mapped.to, entries: mapped.entries }
    }
}

impl<'a> KeptLine<'a> {
    fn of(kept: &'a Kept) -> Self {
        let Kept { place, id, key, kept_as, reason } = kept;
        Self { place: Where::of(place), id: Some(id.as_str()), key, kept_as, reason }
    }

    /// A key of the list as a whole: its place is all that is known of it.
    fn of_list(place: &'a Place) -> Self {
        let key = place.pointer.as_deref().and_then(|pointer| pointer.rsplit('/').next()).unwrap_or_default();
        Self { place: Where::of(place), id: None, key, kept_as: key, reason: "a key of the list" }
    }
}

impl<'a> Left<'a> {
    fn of(left: &'a NotMapped) -> Self {
        Self { place: Where::of(&left.place), what: &left.what, reason: &left.reason }
    }
}
