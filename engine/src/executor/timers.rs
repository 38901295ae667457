//! Timers that activate runs which left memory until a time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::{Mutex, PoisonError};

use chrono::{DateTime, Utc};
use tokio::sync::Notify;

use crate::id::RunId;

type Heap = BinaryHeap<Reverse<(DateTime<Utc>, RunId)>>;

/// Times and the runs they wake. Timers are never removed: a run that is woken too early waits
/// again.
#[derive(Debug, Default)]
pub(super) struct Timers {
    heap: Mutex<Heap>,
    pub(super) changed: Notify,
}

impl Timers {
    pub(super) fn add(&self, at: DateTime<Utc>, run: RunId) {
        self.heap.lock().unwrap_or_else(PoisonError::into_inner).push(Reverse((at, run)));
        self.changed.notify_one();
    }

    pub(super) fn next(&self) -> Option<DateTime<Utc>> {
        self.heap.lock().unwrap_or_else(PoisonError::into_inner).peek().map(|Reverse((at, _))| *at)
    }

    pub(super) fn take_due(&self, now: DateTime<Utc>) -> Option<RunId> {
        let mut heap = self.heap.lock().unwrap_or_else(PoisonError::into_inner);
        if heap.peek().is_some_and(|Reverse((at, _))| *at <= now) {
            return heap.pop().map(|Reverse((_, run))| run);
        }
        None
    }
}
