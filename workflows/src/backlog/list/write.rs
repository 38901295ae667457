//! Writing into the document: states, edits by a person, new entries. Only the keys that are named are touched.

use std::collections::{BTreeMap, HashSet};

use serde_json::{Map, Value, json};

use super::FeatureList;
use super::read::{CRITERIA_KEYS, DEPENDS_KEYS, DESCRIPTION_KEYS, NAME_KEYS};
use super::shape::{entries, entries_mut, spelling, spelling_of_file};
use super::words::{PASSES_KEYS, STATUS_KEYS, TESTED_KEYS, claim};
use crate::backlog::error::BacklogError;
use crate::backlog::feature::{Feature, FeatureId, FeatureStatus};

/// What Longhaul knows of a feature, to be written into the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryState {
    /// The status.
    pub status: FeatureStatus,
    /// Whether its own checks passed.
    pub passes: bool,
    /// When they were last run, as RFC 3339 text.
    pub last_tested: Option<String>,
}

/// What a person may change of an entry by command; `None` leaves it as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FieldEdits {
    /// The new status.
    pub status: Option<FeatureStatus>,
    /// The new priority: the higher, the sooner.
    pub priority: Option<i64>,
}

impl FeatureList {
    /// Writes states into the document and returns the ids that have no entry in it.
    ///
    /// Touches `status`, `passes` and `last_tested`, in the spelling of the file, and if that changed anything and the
    /// list has a `meta`, its `lastModified`, which becomes `now` (RFC 3339). An entry that has `passes` but no status
    /// keeps it so. A word such as `done` stays when it means the status that is to be written.
    pub fn set_states(&mut self, states: &BTreeMap<FeatureId, EntryState>, now: &str) -> Vec<FeatureId> {
        let tested_key = self.tested_key();
        let mut changed = false;
        let mut found = 0;
        let written = entries_mut(&mut self.document, self.at).map_or(&mut [][..], Vec::as_mut_slice);
        for (entry, feature) in written.iter_mut().filter_map(Value::as_object_mut).zip(&mut self.features) {
            let Some(state) = states.get(&feature.id) else {
                continue;
            };
            found += 1;
            changed |= write_state(entry, state, tested_key);
            let claim = claim(entry);
            (feature.status, feature.passes, feature.last_tested) = (claim.status, claim.passes, claim.last_tested);
        }
        if changed {
            self.touch_meta(now);
        }
        if found == states.len() {
            return Vec::new();
        }
        let known: HashSet<&FeatureId> = self.features.iter().map(|feature| &feature.id).collect();
        states.keys().filter(|id| !known.contains(id)).cloned().collect()
    }

    /// Appends an entry in the shape of the file and returns the new text.
    ///
    /// Refuses what could not be read back: an id that is taken, a dependency that is not there, no name. The list is
    /// then as it was.
    pub fn add(&mut self, feature: &Feature) -> Result<String, BacklogError> {
        let mut document = self.document.clone();
        let entry = self.entry_for(feature);
        if let Some(entries) = entries_mut(&mut document, self.at) {
            entries.push(entry.clone().into());
        }
        let mut list = Self::from_document(document.clone())?;
        // Lists without ids get them from the names. If that does not give the id that is wanted, the entry must name
        // it.
        if list.features.last().is_none_or(|added| added.id != feature.id) {
            let named: Map<String, Value> = [("id".to_owned(), json!(feature.id))].into_iter().chain(entry).collect();
            if let Some(last) = entries_mut(&mut document, self.at).and_then(|entries| entries.last_mut()) {
                *last = named.into();
            }
            list = Self::from_document(document)?;
        }
        *self = list;
        Ok(self.to_text())
    }

    /// Changes the status or the priority of an entry, as a person asked, and returns the new text.
    pub fn set_fields(&mut self, id: &FeatureId, edits: FieldEdits) -> Result<String, BacklogError> {
        let unknown = || BacklogError::UnknownFeature { id: id.clone() };
        let index = self.features.iter().position(|feature| feature.id == *id).ok_or_else(unknown)?;
        let mut document = self.document.clone();
        let entry = entries_mut(&mut document, self.at).and_then(|entries| entries[index].as_object_mut());
        let entry = entry.ok_or_else(unknown)?;
        if let Some(status) = edits.status {
            let key = spelling(entry, &STATUS_KEYS).unwrap_or("status");
            entry.insert(key.to_owned(), json!(status));
        }
        if let Some(priority) = edits.priority {
            entry.insert("priority".to_owned(), self.written_priority(priority));
        }
        *self = Self::from_document(document)?;
        Ok(self.to_text())
    }

    fn written_priority(&self, priority: i64) -> Value {
        json!(if self.at.small_priority_first() { priority.saturating_neg() } else { priority })
    }

    fn tested_key(&self) -> &'static str {
        let camel_case = || self.document.pointer("/meta/lastModified").is_some();
        spelling_of_file(entries(&self.document, self.at), &TESTED_KEYS).unwrap_or(if camel_case() {
            "lastTested"
        } else {
            "last_tested"
        })
    }

    fn touch_meta(&mut self, now: &str) {
        if let Some(meta) = self.document.get_mut("meta").and_then(Value::as_object_mut) {
            let key = spelling(meta, &["lastModified", "last_modified"]).unwrap_or("lastModified");
            meta.insert(key.to_owned(), json!(now));
        }
    }

    /// The feature as an entry with the keys that the file's other entries use.
    fn entry_for(&self, feature: &Feature) -> Map<String, Value> {
        let others = entries(&self.document, self.at);
        let own = own_entry(feature);
        if others.is_empty() {
            return own;
        }
        let used = |keys: &[&'static str]| spelling_of_file(others, keys);
        let mut entry = Map::new();
        for (key, value) in own {
            let (spelt, wanted) = match key.as_str() {
                "id" => (Some("id"), used(&["id"]).is_some()),
                "name" => match used(&NAME_KEYS) {
                    // A list of bare descriptions: the name is the description, or the beginning of it.
                    None if feature.description.is_empty() => (used(&DESCRIPTION_KEYS), true),
                    None => (None, feature.description.lines().next() != Some(&feature.name)),
                    spelt => (spelt, true),
                },
                "description" => (used(&DESCRIPTION_KEYS), !feature.description.is_empty()),
                "status" => (used(&STATUS_KEYS), used(&STATUS_KEYS).is_some() || used(&PASSES_KEYS).is_none()),
                "passes" => (None, used(&PASSES_KEYS).is_some()),
                "priority" => (None, feature.priority != 0 || used(&["priority"]).is_some()),
                "acceptance_criteria" => (used(&CRITERIA_KEYS), !feature.acceptance_criteria.is_empty()),
                "depends_on" => (used(&DEPENDS_KEYS), !feature.depends_on.is_empty() || used(&DEPENDS_KEYS).is_some()),
                _ => (None, true),
            };
            if wanted {
                entry.insert(spelt.unwrap_or(&key).to_owned(), self.in_the_files_words(&key, value, feature));
            }
        }
        entry
    }

    /// A value as the file writes it: ids as numbers where all are numbers, dependencies by name where there are no
    /// ids.
    fn in_the_files_words(&self, key: &str, value: Value, feature: &Feature) -> Value {
        match key {
            "id" => self.written_id(&feature.id),
            "priority" => self.written_priority(feature.priority),
            "depends_on" => feature.depends_on.iter().map(|id| self.written_reference(id)).collect(),
            _ => value,
        }
    }

    fn written_id(&self, id: &FeatureId) -> Value {
        let mut others = entries(&self.document, self.at).iter().filter_map(|entry| entry.get("id"));
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
pub(super) fn own_entry(feature: &Feature) -> Map<String, Value> {
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

/// Writes one state; says whether anything changed.
fn write_state(entry: &mut Map<String, Value>, state: &EntryState, tested_key: &str) -> bool {
    let before = claim(entry);
    let only_passes = entry.contains_key("passes") && spelling(entry, &STATUS_KEYS).is_none();
    let mut changed = false;
    let mut put = |entry: &mut Map<String, Value>, key: &str, value: Value| {
        if entry.get(key) != Some(&value) {
            entry.insert(key.to_owned(), value);
            changed = true;
        }
    };
    let status_key = spelling(entry, &STATUS_KEYS);
    if !only_passes && (before.status != state.status || status_key.is_none()) {
        put(entry, status_key.unwrap_or("status"), json!(state.status));
    }
    put(entry, "passes", json!(state.passes));
    match (spelling(entry, &TESTED_KEYS), &state.last_tested) {
        (Some(key), tested) => put(entry, key, json!(tested)),
        (None, Some(tested)) if !only_passes => put(entry, tested_key, json!(tested)),
        _ => {}
    }
    changed
}
