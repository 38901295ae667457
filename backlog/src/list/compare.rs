//! Differences between two versions of a list: edits, and flipped claims.

use std::collections::{BTreeSet, HashMap};
use std::fmt;

use serde_json::{Map, Value};

use super::FeatureList;
use super::report::{shortened, shown};
use super::shape::{EntriesAt, entries};
use super::words::OWNED_KEYS;
use longhaul_workflows::backlog::FeatureId;

/// One difference between two versions of a list, to be shown to a person or an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The entry, by its earlier id if it has one; `None` for the list as a whole.
    pub entry: Option<FeatureId>,
    /// The difference, for example `removed` or `` `description` reworded: … ``.
    pub what: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.entry {
            Some(id) => write!(formatter, "`{id}`: {}", self.what),
            None => write!(formatter, "the list: {}", self.what),
        }
    }
}

impl FeatureList {
    /// The edits since an earlier version in all keys except those that Longhaul owns: removed,
    /// added, moved and reworded entries, and keys of the list itself.
    pub fn edits_since(&self, earlier: &Self) -> Vec<Difference> {
        let pairs = Pairs::new(earlier, self);
        let mut found = list_edits(earlier, self);
        for &(before, after) in &pairs.common {
            let id = &earlier.features[before].id;
            let before = earlier.entry(before);
            let after = self.entry(after);
            found.extend(
                entry_edits(before, after)
                    .into_iter()
                    .map(|what| Difference { entry: Some(id.clone()), what }),
            );
        }
        let named = |list: &Self, index: &usize, what: &str| Difference {
            entry: Some(list.features[*index].id.clone()),
            what: what.to_owned(),
        };
        found.extend(pairs.removed.iter().map(|index| named(earlier, index, "removed")));
        found.extend(pairs.added.iter().map(|index| named(self, index, "added")));
        if !pairs.common.is_sorted_by_key(|(_, after)| *after) {
            found.push(Difference {
                entry: None,
                what: "the entries were put into another order".to_owned(),
            });
        }
        found
    }

    /// The entries with a changed claim (`passes` or `status`).
    pub fn flips_since(&self, earlier: &Self) -> Vec<Difference> {
        let mut found = Vec::new();
        for (before, after) in Pairs::new(earlier, self).common {
            let before = &earlier.features[before];
            let after = &self.features[after];
            let mut flips = Vec::new();
            if before.passes != after.passes {
                flips.push(format!("`passes` {} -> {}", before.passes, after.passes));
            }
            if before.status != after.status {
                flips.push(format!("`status` {} -> {}", before.status, after.status));
            }
            if !flips.is_empty() {
                found.push(Difference { entry: Some(before.id.clone()), what: flips.join(", ") });
            }
        }
        found
    }

    fn entry(&self, index: usize) -> Option<&Map<String, Value>> {
        entries(&self.document, self.at).get(index).and_then(Value::as_object)
    }
}

/// Pairs of indexes of the same entry in both versions.
struct Pairs {
    common: Vec<(usize, usize)>,
    removed: Vec<usize>,
    added: Vec<usize>,
}

impl Pairs {
    /// Pairs entries by id. A new entry at the place of a removed one is the same entry with
    /// another id: a reworded entry has a new id if ids come from the wording.
    fn new(earlier: &FeatureList, later: &FeatureList) -> Self {
        let mut places: HashMap<&FeatureId, usize> = later
            .features
            .iter()
            .enumerate()
            .map(|(index, feature)| (&feature.id, index))
            .collect();
        let mut common = Vec::new();
        let mut removed = Vec::new();
        for (index, feature) in earlier.features.iter().enumerate() {
            match places.remove(&feature.id) {
                Some(place) => common.push((index, place)),
                None => removed.push(index),
            }
        }
        let mut added: BTreeSet<usize> = places.into_values().collect();
        removed.retain(|index| {
            let renamed = added.remove(index);
            if renamed {
                common.push((*index, *index));
            }
            !renamed
        });
        common.sort_unstable();
        Self { common, removed, added: added.into_iter().collect() }
    }
}

/// Differences outside of the entries, except modification times.
fn list_edits(earlier: &FeatureList, later: &FeatureList) -> Vec<Difference> {
    let difference = |what: String| Difference { entry: None, what };
    let (Some(before), Some(after)) = (earlier.document.as_object(), later.document.as_object())
    else {
        let same = earlier.at == later.at;
        return if same { Vec::new() } else { vec![difference("it has another shape".to_owned())] };
    };
    if earlier.at != later.at {
        return vec![difference("its entries are under another key".to_owned())];
    }
    let entries_key = if let EntriesAt::Key(key) = earlier.at { key } else { "" };
    let ignored = [entries_key, "last_updated", "updated_at", "summary"];
    let without_time = |object: &Map<String, Value>| {
        let mut object = object.clone();
        if let Some(meta) = object.get_mut("meta").and_then(Value::as_object_mut) {
            meta.retain(|key, _| key != "lastModified" && key != "last_modified");
        }
        object
    };
    key_edits(&without_time(before), &without_time(after), &ignored)
        .into_iter()
        .map(difference)
        .collect()
}

fn entry_edits(
    before: Option<&Map<String, Value>>,
    after: Option<&Map<String, Value>>,
) -> Vec<String> {
    let empty = Map::new();
    key_edits(before.unwrap_or(&empty), after.unwrap_or(&empty), &OWNED_KEYS)
}

fn key_edits(
    before: &Map<String, Value>,
    after: &Map<String, Value>,
    ignored: &[&str],
) -> Vec<String> {
    let counts = |key: &&String| !ignored.contains(&key.as_str());
    let kept = before.keys().filter(counts).filter_map(|key| match after.get(key) {
        None => Some(format!("`{key}` removed, was {}", shown(&before[key]))),
        Some(value) if *value == before[key] => None,
        Some(value) => Some(changed(key, &before[key], value)),
    });
    let new = after.keys().filter(counts).filter(|key| !before.contains_key(*key));
    kept.chain(new.map(|key| format!("`{key}` added: {}", shown(&after[key])))).collect()
}

fn changed(key: &str, before: &Value, after: &Value) -> String {
    match (before, after) {
        (Value::String(before), Value::String(after)) => {
            let (before, after) = from_the_difference(before, after);
            format!("`{key}` reworded: \"{before}\" -> \"{after}\"")
        }
        (Value::Array(before), Value::Array(after)) => {
            let gone = before
                .iter()
                .filter(|item| !after.contains(item))
                .map(|item| format!("-{}", shown(item)));
            let new = after
                .iter()
                .filter(|item| !before.contains(item))
                .map(|item| format!("+{}", shown(item)));
            let items: Vec<String> = gone.chain(new).collect();
            let items = if items.is_empty() {
                "order or number of the same items".to_owned()
            } else {
                items.join(" ")
            };
            format!("`{key}` changed: {}", shortened(&items, 200))
        }
        _ => format!("`{key}` changed: {} -> {}", shown(before), shown(after)),
    }
}

/// Both texts, shortened around the first difference.
fn from_the_difference(before: &str, after: &str) -> (String, String) {
    let same =
        before.chars().zip(after.chars()).take_while(|(before, after)| before == after).count();
    let before_that: Vec<char> = before.chars().take(same.saturating_sub(20)).collect();
    let skipped =
        before_that.iter().rposition(|letter| letter.is_whitespace()).map_or(0, |blank| blank + 1);
    let cut = |text: &str| {
        let rest: String = text.chars().skip(skipped).collect();
        format!("{}{}", if skipped > 0 { "…" } else { "" }, shortened(&rest, 60))
    };
    (cut(before), cut(after))
}
