//! The unread keys of a list, and explicit ids for entries that need one.

use serde_json::{Map, Value, json};

use super::FeatureList;
use super::read::{self, field_of_key};
use super::report::Report;
use super::shape::{ENTRY_KEYS, EntriesAt, entries, entries_mut};
use longhaul_workflows::backlog::FeatureId;

impl FeatureList {
    /// The unread keys of each entry, one map per feature.
    pub(crate) fn extras(&self) -> Vec<Map<String, Value>> {
        let unread = |entry: &Value| {
            let keys = entry.as_object().into_iter().flatten();
            let unread =
                keys.filter(|(key, _)| *key == "deprecated" || field_of_key(key).is_none());
            unread.map(|(key, value)| (key.clone(), value.clone())).collect()
        };
        entries(&self.document, self.at).iter().map(unread).collect()
    }

    /// The keys of the list as a whole, without its entries; empty if the list is an array.
    pub(crate) fn list_keys(&self) -> Map<String, Value> {
        let keys = self.document.as_object().into_iter().flatten();
        let around =
            keys.filter(|(key, _)| self.at != EntriesAt::Root && !is_entries(self.at, key));
        around.map(|(key, value)| (key.clone(), value.clone())).collect()
    }

    /// Adds a key to the list as a whole; an error says why it cannot.
    pub(crate) fn keep_key(&mut self, key: &str, value: &Value) -> Result<(), &'static str> {
        if ENTRY_KEYS.contains(&key) || key == "verify" {
            return Err("in a list of features this key has a meaning of its own");
        }
        let list = self
            .document
            .as_object_mut()
            .ok_or("the project's list is an array: it has no keys")?;
        match list.get(key) {
            Some(there) if there == value => Ok(()),
            Some(_) => Err("the project's list has this key with another value"),
            None => {
                // Before the entries, where readers expect it.
                let key_of_entries =
                    list.keys().position(|key| is_entries(self.at, key)).unwrap_or(list.len());
                list.shift_insert(key_of_entries, key.to_owned(), value.clone());
                Ok(())
            }
        }
    }
}

fn is_entries(at: EntriesAt, key: &str) -> bool {
    matches!(at, EntriesAt::Key(entries) if entries == key)
}

/// Gives the last entries of a document these ids: if a generated id would differ, all of them get
/// an explicit one.
pub(crate) fn settle_ids(document: &mut Value, at: EntriesAt, ids: &[&FeatureId]) {
    let features = read::features(document, at, &mut Report::default());
    let before = features.len().saturating_sub(ids.len());
    if features[before..].iter().map(|feature| &feature.id).eq(ids.iter().copied()) {
        return;
    }
    let added = entries_mut(document, at).and_then(|entries| entries.get_mut(before..));
    for (entry, id) in added.into_iter().flatten().zip(ids) {
        if let Value::Object(keys) = entry {
            let named = json!(id);
            keys.entry("id").or_insert(named);
            if let Some(id) = keys.shift_remove("id") {
                keys.shift_insert(0, "id".to_owned(), id);
            }
        }
    }
}
