//! Merges an imported backlog into the list of a project: adds new features, keeps known ones
//! unchanged.

use std::collections::HashMap;

use super::error::ImportError;
use super::{DroppedPart, Imported, Item, KeptKey, Place};
use crate::list::{Addition, FeatureList, Update, is_extra};
use longhaul_workflows::backlog::{Backlog, BacklogError, Feature, FeatureId};

/// The result of a merge.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Merged {
    /// The indexes of the items that were added.
    pub added: Vec<usize>,
    /// The items with a known id whose differing fields were taken over.
    pub updated: Vec<KnownItem>,
    /// The other items with a known id.
    pub skipped: Vec<KnownItem>,
    /// The keys of the list as a whole that were added; in a dry run, that would be added.
    pub kept_keys: Vec<KeptKey>,
    /// The keys that could not be added.
    pub not_mapped: Vec<DroppedPart>,
}

/// An item whose id is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownItem {
    /// The index of the item.
    pub item: usize,
    /// The known id, which may differ in case.
    pub id: FeatureId,
    /// The fields that differ in the project's list.
    pub differs: Vec<&'static str>,
}

/// Adds new features to a list: all of them, or none if the list would become invalid. With
/// `update`, known entries get the imported values of differing fields, except claims.
///
/// Importing a file again changes nothing.
pub fn merge(
    list: &mut FeatureList,
    imported: &Imported,
    update: bool,
) -> Result<Merged, ImportError> {
    let by_id: HashMap<String, &Feature> =
        list.features().iter().map(|feature| (feature.id.folded(), feature)).collect();
    let mut merged = Merged::default();
    for (index, item) in imported.items.iter().enumerate() {
        match by_id.get(&item.feature.id.folded()) {
            Some(known) => {
                let differs = differing(known, item);
                let is_updated = update && !differs.is_empty();
                let item = KnownItem { item: index, id: known.id.clone(), differs };
                if is_updated { &mut merged.updated } else { &mut merged.skipped }.push(item);
            }
            None => merged.added.push(index),
        }
    }
    let mut after = list.clone();
    keep_keys(&mut after, imported, &mut merged);
    let items = merged.added.iter().map(|index| &imported.items[*index]);
    let additions: Vec<Addition<'_>> =
        items.map(|item| Addition { feature: &item.feature, extra: &item.extra }).collect();
    if !additions.is_empty() {
        after.add_all(&additions)?;
    }
    if !merged.updated.is_empty() {
        let updates: Vec<Update<'_>> = merged
            .updated
            .iter()
            .map(|known| {
                let Item { feature, extra, .. } = &imported.items[known.item];
                Update { id: &known.id, feature, fields: &known.differs, extra }
            })
            .collect();
        after.update_all(&updates)?;
    }
    if !additions.is_empty() || !merged.updated.is_empty() {
        Backlog::new(after.features().to_vec()).map_err(|error| with_places(error, imported))?;
    }
    *list = after;
    Ok(merged)
}

/// An empty description equals one that repeats the name: exports write that.
fn differing(known: &Feature, item: &Item) -> Vec<&'static str> {
    let mut fields = known.differing_fields(&item.feature);
    let is_description_from_name =
        item.feature.description.is_empty() && known.description == known.name;
    let mut extra = item.extra.iter().filter(|(key, _)| is_extra(key));
    let has_other_extra = extra.any(|(key, value)| known.extra.get(key) != Some(value));
    // The list may have more unread keys; those of the item are not in its feature.
    fields.retain(|field| {
        *field != "extra" && (*field != "description" || !is_description_from_name)
    });
    fields.extend(has_other_extra.then_some("extra"));
    fields
}

fn keep_keys(list: &mut FeatureList, imported: &Imported, merged: &mut Merged) {
    for (place, key, value) in &imported.list_keys {
        match list.keep_key(key, value) {
            Ok(()) => merged.kept_keys.push(KeptKey {
                place: place.clone(),
                id: None,
                key: key.clone(),
                kept_as: key.clone(),
                reason: "a key of the list".to_owned(),
            }),
            Err(reason) => merged.not_mapped.push(DroppedPart {
                place: place.clone(),
                what: format!("`{key}` of the list"),
                reason: reason.to_owned(),
            }),
        }
    }
}

fn with_places(error: BacklogError, imported: &Imported) -> ImportError {
    let BacklogError::Cycles(cycles) = &error else { return error.into() };
    let places: HashMap<&FeatureId, &Place> =
        imported.items.iter().map(|item| (&item.feature.id, &item.place)).collect();
    let place = |id: &FeatureId| (id.clone(), places.get(id).copied().cloned());
    let places = match cycles.as_slice() {
        [cycle] => cycle.path.iter().skip(1).map(place).collect(),
        several => several.iter().map(|cycle| place(&cycle.without_in)).collect(),
    };
    ImportError::Cycle { error, places }
}
