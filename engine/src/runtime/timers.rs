//! Timers that activate runs which left memory until a time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::{Arc, Mutex, PoisonError};

use chrono::{DateTime, Utc};
use tokio::sync::Notify;

use crate::id::RunId;

use super::Shared;

type Heap = BinaryHeap<Reverse<(DateTime<Utc>, RunId)>>;

/// Times and the runs they wake. Timers are never removed: a run that is woken too early waits
/// again.
#[derive(Debug, Default)]
pub(super) struct Timers {
    heap: Mutex<Heap>,
    changed: Notify,
}

impl Timers {
    pub(super) fn add(&self, at: DateTime<Utc>, run: RunId) {
        self.heap.lock().unwrap_or_else(PoisonError::into_inner).push(Reverse((at, run)));
        self.changed.notify_one();
    }

    fn next(&self) -> Option<DateTime<Utc>> {
        self.heap.lock().unwrap_or_else(PoisonError::into_inner).peek().map(|Reverse((at, _))| *at)
    }

    fn take_due(&self, now: DateTime<Utc>) -> Option<RunId> {
        let mut heap = self.heap.lock().unwrap_or_else(PoisonError::into_inner);
        if heap.peek().is_some_and(|Reverse((at, _))| *at <= now) {
            return heap.pop().map(|Reverse((_, run))| run);
        }
        None
    }
}

/// Wakes runs when their time has come, until the engine stops.
pub(super) async fn keep_time(shared: Arc<Shared>) {
    loop {
        while let Some(run) = shared.timers.take_due(shared.clock.now()) {
            shared.wake(run);
        }
        let next = shared.timers.next();
        let time = async {
            match next {
                Some(next) => shared.clock.sleep_until(next).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = time => {}
            () = shared.timers.changed.notified() => {}
            () = shared.stopped() => return,
        }
    }
}
