//! Converts one entry from the keys of another tool to those of a feature list.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::DroppedPart;
use super::place::Place;
use crate::list::{field_of_key, is_read, is_whole};

/// Why an unread key is kept.
const NO_FIELD: &str = "no field of a feature means this";
/// Why a key is kept although it was read.
const READ_TOO: &str = "read too, and kept because a field does not hold all of it";

/// An entry: its fields, the kept keys, the dropped parts.
pub(super) struct Entry<'e> {
    pub(super) place: Place,
    pub(super) source: &'e Map<String, Value>,
    /// Fields by the keys of a feature list.
    pub(super) own: Map<String, Value>,
    /// Read keys with their fields.
    pub(super) mapped: Vec<(String, String)>,
    pub(super) not_mapped: DroppedParts,
    /// Dropped keys.
    consumed: BTreeSet<&'e str>,
    carried: BTreeSet<&'e str>,
}

/// The parts that are not imported.
#[derive(Default)]
pub(super) struct DroppedParts(pub(super) Vec<DroppedPart>);

impl DroppedParts {
    pub(super) fn add(&mut self, place: Place, what: impl Into<String>, reason: impl Into<String>) {
        self.0.push(DroppedPart { place, what: what.into(), reason: reason.into() });
    }
}

/// A kept key: its name, its name in the list, its value, and the reason.
pub(super) struct Leftover {
    pub(super) key: String,
    pub(super) kept_as: String,
    pub(super) value: Value,
    pub(super) reason: &'static str,
}

impl<'e> Entry<'e> {
    /// An entry before any key is read.
    pub(super) fn new(place: Place, source: &'e Map<String, Value>) -> Self {
        Self {
            place,
            source,
            own: Map::new(),
            mapped: Vec::new(),
            not_mapped: DroppedParts::default(),
            consumed: BTreeSet::new(),
            carried: BTreeSet::new(),
        }
    }

    /// An entry that uses the keys of feature lists.
    pub(super) fn of_list(place: Place, source: &'e Map<String, Value>) -> Self {
        let mut entry = Self::new(place, source);
        for (key, value) in source {
            let Some(field) = field_of_key(key).filter(|_| is_read(source, key)) else { continue };
            entry.own.insert(key.clone(), value.clone());
            // A status cannot express all of `deprecated`.
            let is_kept = key == "deprecated" && *value == json!(true);
            if !is_whole(key, value) {
                entry.carried.insert(key);
            } else if !is_kept {
                entry.consumed.insert(key);
            }
            entry.note(key, field, value);
        }
        entry
    }

    /// A value that exists and is not `null`.
    pub(super) fn value(&self, key: &str) -> Option<&'e Value> {
        self.source.get(key).filter(|value| !value.is_null())
    }

    /// A text that exists and is not blank.
    pub(super) fn text(&self, key: &str) -> Option<&'e str> {
        self.value(key).and_then(Value::as_str).filter(|text| !text.trim().is_empty())
    }

    /// Reads a key unchanged into a field.
    pub(super) fn take(&mut self, key: &'e str, field: &str) {
        if let Some(value) = self.source.get(key) {
            self.put(key, field, value.clone());
        }
    }

    /// Reads a key into a field, with the vocabulary of the list.
    pub(super) fn put(&mut self, key: &'e str, field: &str, value: Value) {
        self.consumed.insert(key);
        self.note(key, field, &value);
        self.own.insert(field.to_owned(), value);
    }

    /// Reads a key into a field and keeps it, because the field does not hold all of it.
    pub(super) fn put_and_keep(&mut self, key: &'e str, field: &str, value: Value) {
        self.carried.insert(key);
        self.note(key, field, &value);
        self.own.insert(field.to_owned(), value);
    }

    /// Undoes the reading of a key, which is then kept.
    pub(super) fn unread(&mut self, key: &str) {
        self.own.shift_remove(key);
        self.consumed.remove(key);
        self.mapped.retain(|(mapped, _)| mapped != key);
    }

    /// Records that a key was read into a field and is kept too.
    pub(super) fn carry_as(&mut self, key: &'e str, field: &str) {
        self.carried.insert(key);
        self.mapped.push((key.to_owned(), field.to_owned()));
    }

    /// Appends a text to the description and keeps it. A description that contains it stays
    /// unchanged.
    pub(super) fn carry(&mut self, key: &'e str, heading: &str) {
        self.carried.insert(key);
        let Some(text) = self.text(key).map(str::trim) else { return };
        let description = self.own.get("description").and_then(Value::as_str).unwrap_or_default();
        if !description.contains(text) {
            let gap = if description.is_empty() { "" } else { "\n\n" };
            let longer = format!("{description}{gap}{heading}:\n{text}");
            self.own.insert("description".to_owned(), json!(longer));
        }
        self.carry_as(key, "description");
    }

    /// The unread keys. A key with a meaning in a feature list gets the prefix of the tool.
    pub(super) fn leftovers(&self, tool: &str) -> Vec<Leftover> {
        let rest = self.source.iter().filter(|(key, _)| !self.consumed.contains(key.as_str()));
        rest.map(|(key, value)| {
            let renamed = field_of_key(key).is_some() && key != "deprecated";
            let kept_as =
                if renamed { format!("{}_{key}", tool.replace('-', "_")) } else { key.clone() };
            let reason = if self.carried.contains(key.as_str()) { READ_TOO } else { NO_FIELD };
            Leftover { key: key.clone(), kept_as, value: value.clone(), reason }
        })
        .collect()
    }

    fn note(&mut self, key: &str, field: &str, value: &Value) {
        if !value.is_null() {
            self.mapped.push((key.to_owned(), field.to_owned()));
        }
    }
}

/// The items of a text with one item per line, with or without `- `; indented lines continue the
/// item above.
pub(super) fn items_of_text(text: &str) -> Vec<String> {
    let mut items: Vec<String> = Vec::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let bare = line.trim();
        match items.last_mut() {
            Some(item) if line.starts_with("  ") && without_bullet(bare).is_none() => {
                item.push('\n');
                item.push_str(bare);
            }
            _ => items.push(without_bullet(bare).unwrap_or(bare).to_owned()),
        }
    }
    items
}

fn without_bullet(text: &str) -> Option<&str> {
    let text = ["- ", "* ", "+ "].iter().find_map(|bullet| text.strip_prefix(bullet))?.trim();
    let boxed = ["[ ]", "[x]", "[X]"].iter().find_map(|mark| text.strip_prefix(mark));
    Some(boxed.map_or(text, str::trim))
}
