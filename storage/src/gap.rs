//! Unreadable parts of the log: a page of its file is damaged.

use std::path::Path;

use longhaul_engine::{RunId, StoreError};

use crate::error::{ReadError, catch_damage, page_of};
use crate::key;
use crate::record::Entry;

/// The keys between two readable ones.
#[derive(Debug, Clone)]
pub(crate) struct Gap {
    kind: u8,
    after: Option<Vec<u8>>,
    before: Option<Vec<u8>>,
    why: String,
}

impl Gap {
    /// Whether it may hold records of a run.
    pub(crate) fn touches(&self, run: &RunId) -> bool {
        let first = key::of_run(self.kind, run);
        let last = [first.as_slice(), &[u8::MAX; key::LONGEST_NAME]].concat();
        self.before.as_ref().is_none_or(|before| first < *before)
            && self.after.as_ref().is_none_or(|after| last > *after)
    }

    /// Whether it may hold events of a run. The first readable event after it may be the first of
    /// its run.
    pub(crate) fn cuts(&self, run: &RunId) -> bool {
        let begins = |key: &Vec<u8>| {
            key::run_of(key).as_ref() == Some(run) && key::number_of(key) == Some(0)
        };
        self.kind == key::EVENT && self.touches(run) && !self.before.as_ref().is_some_and(begins)
    }

    /// Whether this is the last event before it.
    pub(crate) fn comes_after(&self, key: &[u8]) -> bool {
        self.after.as_deref() == Some(key)
    }

    pub(crate) fn hides_published(&self, run: &RunId) -> bool {
        self.kind == key::PUBLISHED && self.touches(run)
    }

    /// Description for people.
    pub(crate) fn text(&self, directory: &Path) -> String {
        let what = match self.kind {
            key::EVENT => "events",
            key::MESSAGE => "messages",
            key::PUBLISHED => "published values",
            _ => "summaries",
        };
        let shown = |key: &Option<Vec<u8>>| key.as_ref().map(|key| key::describe(key));
        let place = match (shown(&self.after), shown(&self.before)) {
            (Some(after), Some(before)) => format!("{what} after {after} and before {before}"),
            (Some(after), None) => format!("{what} after {after}"),
            (None, Some(before)) => format!("{what} before {before}"),
            (None, None) => format!("all {what}"),
        };
        format!("{place} cannot be read from {}: {}", directory.join("log/db").display(), self.why)
    }
}

/// All readable entries with a prefix; an iteration from the end skips the damaged part.
pub(crate) fn entries(tree: &sled::Tree, kind: u8, prefix: &[u8]) -> (Vec<Entry>, Option<Gap>) {
    let mut entries = Vec::new();
    let Err(error) = walk(tree.scan_prefix(prefix), &mut entries) else { return (entries, None) };
    let mut from_end = Vec::new();
    let is_whole = walk(tree.scan_prefix(prefix).rev(), &mut from_end).is_ok();
    from_end.reverse();
    if is_whole {
        return (from_end, None);
    }
    let after = entries.last().map(|(key, _)| key.to_vec());
    from_end.retain(|(key, _)| after.as_ref().is_none_or(|after| key[..] > after[..]));
    let before = from_end.first().map(|(key, _)| key.to_vec());
    entries.extend(from_end);
    let why = match error {
        ReadError::Damaged(why) => why,
        error => StoreError::from(error).to_string(),
    };
    (entries, Some(Gap { kind, after, before, why }))
}

fn walk(
    entries: impl Iterator<Item = sled::Result<Entry>>,
    into: &mut Vec<Entry>,
) -> Result<(), ReadError> {
    catch_damage(|| {
        for entry in entries {
            into.push(entry.map_err(|error| ReadError::Damaged(damage(&error)))?);
        }
        Ok(())
    })
}

fn damage(error: &sled::Error) -> String {
    match error {
        sled::Error::Corruption { .. } => format!("{} is damaged", page_of(error)),
        error => error.to_string(),
    }
}
