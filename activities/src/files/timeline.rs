//! Entries of the files, and their order.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use longhaul_engine::{Position, RunId};
use longhaul_workflows::backlog::FeatureId;
use longhaul_workflows::narrative::Entry;

/// The order of entries: by time, then by position in the log.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) at: DateTime<Utc>,
    pub(super) run: RunId,
    pub(super) position: Position,
    /// The index of the entry among those of its event.
    pub(super) nth: u8,
}

#[derive(Debug, Clone)]
pub(super) struct TimelineEntry {
    pub(super) key: Key,
    /// `None`: the entry concerns the whole project.
    pub(super) feature: Option<FeatureId>,
    /// Its session, or its run if there is none.
    pub(super) session: String,
    pub(super) entry: Entry,
}

/// The latest items, in order of their keys, not of reading.
#[derive(Debug)]
pub(super) struct Timeline<T>(BTreeMap<Key, T>);

impl<T> Default for Timeline<T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<T> Timeline<T> {
    /// The number of items kept.
    pub(super) const LIMIT: usize = 2000;

    pub(super) fn insert(&mut self, key: Key, item: T) {
        self.0.insert(key, item);
        if self.0.len() > Self::LIMIT {
            self.0.pop_first();
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&Key, &T)> {
        self.0.iter()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
