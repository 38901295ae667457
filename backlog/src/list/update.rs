//! Replaces fields of entries, in the spelling of the file.

use serde_json::{Map, Value};

use super::FeatureList;
use super::read::field_of_key;
use super::shape::entries_mut;
use crate::error::ListError;
use longhaul_workflows::backlog::{Feature, FeatureId};

/// New content of an entry.
#[derive(Debug, Clone, Copy)]
pub struct Update<'a> {
    /// The entry.
    pub id: &'a FeatureId,
    /// Its new fields.
    pub feature: &'a Feature,
    /// The fields to replace, and `extra` for the unread keys. Claims cannot be replaced.
    pub fields: &'a [&'static str],
    /// New unread keys.
    pub extra: &'a Map<String, Value>,
}

impl FeatureList {
    /// Replaces fields of entries: all, or none if the list would become invalid.
    pub(crate) fn update_all(&mut self, updates: &[Update<'_>]) -> Result<(), ListError> {
        let mut document = self.document.clone();
        let places: std::collections::HashMap<&FeatureId, usize> =
            self.features.iter().enumerate().map(|(place, feature)| (&feature.id, place)).collect();
        for update in updates {
            let new = self.entry_for(update.feature);
            let entry = places.get(update.id).and_then(|place| {
                entries_mut(&mut document, self.at)?.get_mut(*place)?.as_object_mut()
            });
            let Some(entry) = entry else { continue };
            for field in update.fields {
                replace(entry, &new, field);
            }
            if update.fields.contains(&"extra") {
                for (key, value) in update.extra.iter().filter(|(key, _)| is_extra(key)) {
                    entry.insert(key.clone(), value.clone());
                }
            }
        }
        *self = Self::from_document(document)?;
        Ok(())
    }
}

/// Whether a key of an entry is unread and no claim.
pub(crate) fn is_extra(key: &str) -> bool {
    field_of_key(key).is_none() && !key.starts_with("claimed_")
}

/// Replaces the keys of one field, at their place.
fn replace(entry: &mut Map<String, Value>, new: &Map<String, Value>, field: &str) {
    let is_of = |key: &String| field_of_key(key) == Some(field);
    let old: Vec<String> = entry.keys().filter(|key| is_of(key)).cloned().collect();
    let place = entry.keys().position(is_of).unwrap_or(entry.len());
    for key in old {
        entry.shift_remove(&key);
    }
    for (key, value) in new.iter().filter(|(key, _)| is_of(key)) {
        entry.shift_insert(place.min(entry.len()), key.clone(), value.clone());
    }
}
