//! Entries of the files, and their order.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use longhaul_engine::{Position, RunId};
use longhaul_workflows::backlog::FeatureId;
use longhaul_workflows::narrative::Entry;

/// The order of entries: by time, then as the log has them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) at: DateTime<Utc>,
    pub(super) run: RunId,
    pub(super) position: Position,
    /// The number of the entry among those of its event.
    pub(super) nth: u8,
}

/// One entry.
#[derive(Debug, Clone)]
pub(super) struct TimelineEntry {
    pub(super) key: Key,
    /// `None`: it happened to the whole project.
    pub(super) feature: Option<FeatureId>,
    /// The session that it belongs to, or the run if there is none.
    pub(super) session: String,
    pub(super) entry: Entry,
}

/// The latest items, in order, whenever they were read.
#[derive(Debug)]
pub(super) struct Timeline<T>(BTreeMap<Key, T>);

impl<T> Default for Timeline<T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<T> Timeline<T> {
    /// How many are kept.
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
