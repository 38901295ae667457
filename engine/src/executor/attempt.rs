//! One attempt of an activity: its handler, with timeouts.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use futures_util::FutureExt;
use tokio::sync::{mpsc, watch};

use crate::activity::{Attempt, ErasedHandler, Probe, Worker};
use crate::clock::Clock;
use crate::failure::Failure;
use crate::id::Slot;
use crate::payload::Payload;
use crate::policy::Policy;

/// How long a handler may take to end after cancellation, before it is dropped.
pub(super) const GRACE: Duration = Duration::from_secs(30);

/// The worker of an attempt in this process.
pub(super) struct LocalWorker {
    pub(super) slot: Slot,
    pub(super) cancel: watch::Receiver<bool>,
    pub(super) clock: Arc<dyn Clock>,
    /// The last heartbeat, in milliseconds since 1970.
    pub(super) alive: AtomicI64,
    pub(super) progress: mpsc::UnboundedSender<(Slot, Payload)>,
}

#[async_trait]
impl Worker for LocalWorker {
    fn heartbeat(&self) {
        self.alive.store(self.clock.now().timestamp_millis(), Ordering::Relaxed);
    }

    fn record_progress(&self, details: Payload) {
        let _ = self.progress.send((self.slot, details));
    }

    fn is_cancelled(&self) -> bool {
        *self.cancel.borrow()
    }

    async fn cancelled(&self) {
        let mut cancel = self.cancel.clone();
        if cancel.wait_for(|cancelled| *cancelled).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// Runs one attempt to its end or its timeout.
pub(super) async fn run(
    handler: Arc<dyn ErasedHandler>,
    input: Payload,
    attempt: Attempt,
    worker: Arc<LocalWorker>,
    policy: Policy,
    cancel: watch::Sender<bool>,
) -> Result<Payload, Failure> {
    let mut work = AssertUnwindSafe(handler.perform(&input, &attempt)).catch_unwind();
    let overdue = tokio::select! {
        biased;
        result = &mut work => return result.unwrap_or_else(|panic| Err(panicked(panic.as_ref()))),
        overdue = out_of_time(&worker, &policy) => overdue,
    };
    cancel.send_replace(true);
    let _ = tokio::time::timeout(GRACE, &mut work).await;
    Err(Failure::retryable(overdue))
}

/// Probes the outcome of an attempt.
pub(super) async fn probe(
    handler: Arc<dyn ErasedHandler>,
    input: Payload,
    attempt: Attempt,
) -> Probe<Payload> {
    AssertUnwindSafe(handler.probe(&input, &attempt))
        .catch_unwind()
        .await
        .unwrap_or_else(|panic| Probe::Unknown(panicked(panic.as_ref()).message))
}

fn panicked(panic: &(dyn std::any::Any + Send)) -> Failure {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    Failure::terminal(format!("the handler panicked: {}", text.unwrap_or_default()))
}

async fn out_of_time(worker: &LocalWorker, policy: &Policy) -> String {
    worker.heartbeat();
    let clock = &worker.clock;
    let close = later(clock.now(), policy.start_to_close);
    loop {
        let silent = policy.heartbeat.map(|limit| (later(last_beat(worker), limit), limit));
        let next = silent.map_or(close, |(silent, _)| silent.min(close));
        clock.sleep_until(next).await;
        let now = clock.now();
        if now >= close {
            return format!("timed out after {:?}", policy.start_to_close);
        }
        if let Some(limit) = policy.heartbeat
            && now >= later(last_beat(worker), limit)
        {
            return format!("no sign of life for {limit:?}");
        }
    }
}

fn last_beat(worker: &LocalWorker) -> DateTime<Utc> {
    DateTime::from_timestamp_millis(worker.alive.load(Ordering::Relaxed)).unwrap_or_default()
}

/// The sum of a time and a duration, saturating.
pub(crate) fn later(from: DateTime<Utc>, by: Duration) -> DateTime<Utc> {
    chrono::Duration::from_std(by)
        .ok()
        .and_then(|by| from.checked_add_signed(by))
        .unwrap_or(DateTime::<Utc>::MAX_UTC)
}
