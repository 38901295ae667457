//! Writes states into the document. Changes only these keys.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::FeatureList;
use super::shape::{entries, entries_mut, spelling, spelling_of_file};
use super::words::{STATUS_KEYS, TESTED_KEYS, claim};
use longhaul_workflows::backlog::{FeatureId, FeatureStatus};

/// The state of a feature for the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryState {
    /// The status.
    pub status: FeatureStatus,
    /// Whether its own checks passed.
    pub passes: bool,
    /// When they were last run, as RFC 3339 text.
    pub last_tested: Option<String>,
}

impl FeatureList {
    /// Writes states into the document and returns whether that changed it.
    ///
    /// Touches `status`, `passes` and `last_tested`, in the spelling of the file, and if that
    /// changed anything and the list has a `meta`, its `lastModified`, which becomes `now` (RFC
    /// 3339). An entry that has `passes` but no status keeps it so. A word such as `done` stays
    /// when it means the status that is to be written.
    pub fn set_states(&mut self, states: &BTreeMap<FeatureId, EntryState>, now: &str) -> bool {
        let tested_key = self.tested_key();
        let mut changed = false;
        let written =
            entries_mut(&mut self.document, self.at).map_or(&mut [][..], Vec::as_mut_slice);
        for (entry, feature) in
            written.iter_mut().filter_map(Value::as_object_mut).zip(&mut self.features)
        {
            let Some(state) = states.get(&feature.id) else {
                continue;
            };
            changed |= write_state(entry, state, tested_key);
            let claim = claim(entry);
            feature.status = claim.status;
            feature.passes = claim.passes;
            feature.last_tested = claim.last_tested;
        }
        if changed {
            self.touch_meta(now);
        }
        changed
    }

    pub(super) fn written_priority(&self, priority: i64) -> Value {
        json!(if self.at.small_priority_first() { priority.saturating_neg() } else { priority })
    }

    fn tested_key(&self) -> &'static str {
        let camel_case = || self.document.pointer("/meta/lastModified").is_some();
        spelling_of_file(entries(&self.document, self.at), &TESTED_KEYS)
            .unwrap_or(if camel_case() { "lastTested" } else { "last_tested" })
    }

    fn touch_meta(&mut self, now: &str) {
        if let Some(meta) = self.document.get_mut("meta").and_then(Value::as_object_mut) {
            let key = spelling(meta, &["lastModified", "last_modified"]).unwrap_or("lastModified");
            meta.insert(key.to_owned(), json!(now));
        }
    }
}

/// Writes one state; returns whether anything changed.
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
