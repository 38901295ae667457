//! Merges an imported backlog into the list of a project: adds new features, keeps known ones
//! unchanged.

use std::collections::HashMap;

use super::error::ImportError;
use super::{Imported, Kept, NotMapped, Place};
use crate::list::{Addition, FeatureList};
use longhaul_workflows::backlog::{Backlog, BacklogError, Feature, FeatureId};

/// The result of a merge.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Merged {
    /// The indexes of the items that were added.
    pub added: Vec<usize>,
    /// The items with a known id.
    pub skipped: Vec<Skipped>,
    /// The keys of the list as a whole that the project's list has now, or would have.
    pub kept_keys: Vec<Kept>,
    /// The keys that could not be added.
    pub not_mapped: Vec<NotMapped>,
}

/// An item that was not added because its id is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// The index of the item.
    pub item: usize,
    /// The known id, which may differ in case.
    pub id: FeatureId,
    /// The fields that differ in the project's list.
    pub differs: Vec<&'static str>,
}

/// Adds new features to a list: all of them, or none if the list would become invalid.
///
/// Importing a file again changes nothing.
pub fn merge(list: &mut FeatureList, imported: &Imported) -> Result<Merged, ImportError> {
    let there: HashMap<String, &Feature> =
        list.features().iter().map(|feature| (feature.id.folded(), feature)).collect();
    let mut merged = Merged::default();
    for (index, item) in imported.items.iter().enumerate() {
        match there.get(&item.feature.id.folded()) {
            Some(known) => {
                let differs = differing(known, &item.feature);
                merged.skipped.push(Skipped { item: index, id: known.id.clone(), differs });
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
        Backlog::new(after.features().to_vec()).map_err(|error| with_places(error, imported))?;
    }
    *list = after;
    Ok(merged)
}

/// A list with only names and descriptions may swap the two: that is no difference.
fn differing(known: &Feature, imported: &Feature) -> Vec<&'static str> {
    let mut fields = known.differing_fields(imported);
    let given_back = imported.description.is_empty() && known.description == known.name;
    // The kept keys of an item are not in its feature yet.
    fields.retain(|field| *field != "extra" && (*field != "description" || !given_back));
    fields
}

fn keep_keys(list: &mut FeatureList, imported: &Imported, merged: &mut Merged) {
    for (place, key, value) in &imported.list_keys {
        match list.keep_key(key, value) {
            Ok(()) => merged.kept_keys.push(Kept {
                place: place.clone(),
                id: None,
                key: key.clone(),
                kept_as: key.clone(),
                reason: "a key of the list".to_owned(),
            }),
            Err(reason) => merged.not_mapped.push(NotMapped {
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
