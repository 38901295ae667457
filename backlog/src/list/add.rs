//! New entries, in the shape of the file and with the keys of its other entries.

use serde_json::{Map, Value, json};

use super::FeatureList;
use super::extra::settle_ids;
use super::read::{CRITERIA_KEYS, DEPENDS_KEYS, DESCRIPTION_KEYS, NAME_KEYS, field_of_key};
use super::shape::{entries, entries_mut, spelling_of_file};
use super::words::{PASSES_KEYS, STATUS_KEYS};
use crate::error::ListError;
use longhaul_workflows::backlog::{Feature, FeatureId, FeatureStatus};

/// A new entry.
#[derive(Debug, Clone, Copy)]
pub struct Addition<'a> {
    /// Its fields.
    pub feature: &'a Feature,
    /// Keys that are written after the fields, except those that a list reads itself.
    pub extra: &'a Map<String, Value>,
}

impl FeatureList {
    /// Appends an entry in the shape of the file and returns the new text.
    ///
    /// Refuses an entry that would be invalid: a duplicate id, an unknown dependency, no name. The
    /// list is then unchanged.
    pub fn add(&mut self, feature: &Feature) -> Result<String, ListError> {
        self.add_all(&[Addition { feature, extra: &Map::new() }])
    }

    /// Appends entries, which may depend on each other in any order, as [`add`](Self::add) does:
    /// all or none.
    pub(crate) fn add_all(&mut self, additions: &[Addition<'_>]) -> Result<String, ListError> {
        let mut document = self.document.clone();
        let new = additions.iter().map(|addition| Value::from(self.entry_with_extra(addition)));
        if let Some(entries) = entries_mut(&mut document, self.at) {
            entries.extend(new);
        }
        let ids: Vec<&FeatureId> = additions.iter().map(|addition| &addition.feature.id).collect();
        settle_ids(&mut document, self.at, &ids);
        *self = Self::from_document(document)?;
        Ok(self.to_text())
    }

    fn entry_with_extra(&self, addition: &Addition<'_>) -> Map<String, Value> {
        let mut entry = self.entry_for(addition.feature);
        let means_nothing = |key: &String| key == "deprecated" || field_of_key(key).is_none();
        for (key, value) in addition.extra.iter().filter(|(key, _)| means_nothing(key)) {
            entry.entry(key.clone()).or_insert_with(|| value.clone());
        }
        entry
    }

    /// The feature as an entry with the keys that the file's other entries use.
    pub(super) fn entry_for(&self, feature: &Feature) -> Map<String, Value> {
        let others = entries(&self.document, self.at);
        let mut own = own_entry(feature);
        if others.is_empty() {
            own.insert("priority".to_owned(), self.written_priority(feature.priority));
            return own;
        }
        // A claim that `passes` does not express needs a status, even if the other entries have
        // none.
        let says_more = feature.status
            != if feature.passes { FeatureStatus::Completed } else { FeatureStatus::Pending };
        let used = |keys: &[&'static str]| spelling_of_file(others, keys);
        let mut entry = Map::new();
        for (key, value) in own {
            let (spelt, wanted) = match key.as_str() {
                "id" => (Some("id"), used(&["id"]).is_some()),
                "name" => match used(&NAME_KEYS) {
                    // A list of bare descriptions: the name is the description or its beginning.
                    None if feature.description.is_empty() => (used(&DESCRIPTION_KEYS), true),
                    None => (None, feature.description.lines().next() != Some(&feature.name)),
                    spelt => (spelt, true),
                },
                "description" => (used(&DESCRIPTION_KEYS), !feature.description.is_empty()),
                "status" => {
                    let usual = used(&STATUS_KEYS).is_some() || used(&PASSES_KEYS).is_none();
                    (used(&STATUS_KEYS), usual || says_more)
                }
                "passes" => (None, used(&PASSES_KEYS).is_some()),
                "priority" => (None, feature.priority != 0 || used(&["priority"]).is_some()),
                "acceptance_criteria" => {
                    (used(&CRITERIA_KEYS), !feature.acceptance_criteria.is_empty())
                }
                "depends_on" => (
                    used(&DEPENDS_KEYS),
                    !feature.depends_on.is_empty() || used(&DEPENDS_KEYS).is_some(),
                ),
                _ => (None, true),
            };
            if wanted {
                entry.insert(
                    spelt.unwrap_or(&key).to_owned(),
                    self.in_the_files_words(&key, value, feature),
                );
            }
        }
        entry
    }

    /// A value in the style of the file: numeric ids if all are numbers, dependencies by name if
    /// there are no ids.
    fn in_the_files_words(&self, key: &str, value: Value, feature: &Feature) -> Value {
        match key {
            "id" => self.written_id(&feature.id),
            "priority" => self.written_priority(feature.priority),
            "depends_on" => {
                feature.depends_on.iter().map(|id| self.written_reference(id)).collect()
            }
            _ => value,
        }
    }

    fn written_id(&self, id: &FeatureId) -> Value {
        let mut others =
            entries(&self.document, self.at).iter().filter_map(|entry| entry.get("id"));
        match id.as_str().parse::<u64>() {
            Ok(number) if number.to_string() == id.as_str() && others.all(Value::is_u64) => {
                json!(number)
            }
            _ => json!(id),
        }
    }

    fn written_reference(&self, id: &FeatureId) -> Value {
        let has_ids = spelling_of_file(entries(&self.document, self.at), &["id"]).is_some();
        if has_ids {
            return self.written_id(id);
        }
        let Some(target) = self.feature(id) else {
            return json!(id);
        };
        let unique = self.features.iter().filter(|other| other.name == target.name).count() == 1;
        let is_an_id = self.features.iter().any(|other| other.id.as_str() == target.name);
        if unique && !is_an_id && target.name.len() <= 80 { json!(target.name) } else { json!(id) }
    }
}

/// A feature in Longhaul's own shape.
pub(crate) fn own_entry(feature: &Feature) -> Map<String, Value> {
    let mut entry = Map::new();
    let mut put = |key: &str, value: Value| entry.insert(key.to_owned(), value);
    put("id", json!(feature.id));
    put("name", json!(feature.name));
    put("description", json!(feature.description));
    if let Some(category) = &feature.category {
        put("category", json!(category));
    }
    put("status", json!(feature.status));
    put("passes", json!(feature.passes));
    put("priority", json!(feature.priority));
    put("acceptance_criteria", json!(feature.acceptance_criteria));
    put("depends_on", json!(feature.depends_on));
    if !feature.checks.is_empty() {
        put("checks", json!(feature.checks));
    }
    if feature.approval {
        put("approval", json!(true));
    }
    if let Some(tested) = &feature.last_tested {
        put("last_tested", json!(tested));
    }
    entry
}
