//! Counters of the committer.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Write counters of a store since it was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Groups, each with one flush and one sync.
    pub groups: u64,
    /// Commits and deliveries in them.
    pub commits: u64,
    /// Events in them.
    pub events: u64,
    /// Bytes of keys and values in them, without blobs.
    pub bytes: u64,
}

impl Statistics {
    /// The average number of commits per group.
    #[expect(clippy::cast_precision_loss, reason = "a mean for people")]
    pub fn mean_group(&self) -> f64 {
        if self.groups == 0 { 0.0 } else { self.commits as f64 / self.groups as f64 }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Counters {
    groups: AtomicU64,
    commits: AtomicU64,
    events: AtomicU64,
    bytes: AtomicU64,
}

impl Counters {
    pub(crate) fn add(&self, group: Statistics) {
        self.groups.fetch_add(group.groups, Relaxed);
        self.commits.fetch_add(group.commits, Relaxed);
        self.events.fetch_add(group.events, Relaxed);
        self.bytes.fetch_add(group.bytes, Relaxed);
    }

    pub(crate) fn read(&self) -> Statistics {
        Statistics {
            groups: self.groups.load(Relaxed),
            commits: self.commits.load(Relaxed),
            events: self.events.load(Relaxed),
            bytes: self.bytes.load(Relaxed),
        }
    }
}
