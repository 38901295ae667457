//! One attempt of an activity: its handler, within its limits of time.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use chrono::{DateTime, Utc};
use futures_util::FutureExt;
use tokio::sync::watch;

use crate::activity::{Attempt, ErasedHandler, Probe};
use crate::clock::Clock;
use crate::failure::Failure;
use crate::payload::Payload;
use crate::policy::Policy;

/// How long a handler may take to end after it was told to, before it is dropped.
pub(super) const GRACE: Duration = Duration::from_secs(30);

/// Runs one attempt to its end, or to the end of its time.
pub(crate) async fn run(
    handler: Arc<dyn ErasedHandler>,
    input: Payload,
    attempt: Attempt,
    policy: Policy,
    cancel: watch::Sender<bool>,
) -> Result<Payload, Failure> {
    let clock = attempt.clock.clone();
    let mut work = AssertUnwindSafe(handler.perform(&input, &attempt)).catch_unwind();
    let overdue = tokio::select! {
        biased;
        result = &mut work => return result.unwrap_or_else(|panic| Err(panicked(panic.as_ref()))),
        overdue = out_of_time(&*clock, &attempt, &policy) => overdue,
    };
    cancel.send_replace(true);
    let _ = tokio::time::timeout(GRACE, &mut work).await;
    Err(Failure::retryable(overdue))
}

/// Asks the world what became of an attempt.
pub(crate) async fn probe(handler: Arc<dyn ErasedHandler>, input: Payload, attempt: Attempt) -> Probe<Payload> {
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

async fn out_of_time(clock: &dyn Clock, attempt: &Attempt, policy: &Policy) -> String {
    attempt.heartbeat();
    let close = later(clock.now(), policy.start_to_close);
    loop {
        let silent = policy.heartbeat.map(|limit| (later(last_beat(attempt), limit), limit));
        let next = silent.map_or(close, |(silent, _)| silent.min(close));
        clock.sleep_until(next).await;
        let now = clock.now();
        if now >= close {
            return format!("timed out after {:?}", policy.start_to_close);
        }
        if let Some(limit) = policy.heartbeat
            && now >= later(last_beat(attempt), limit)
        {
            return format!("no sign of life for {limit:?}");
        }
    }
}

fn last_beat(attempt: &Attempt) -> DateTime<Utc> {
    DateTime::from_timestamp_millis(attempt.alive.load(Ordering::Relaxed)).unwrap_or_default()
}

/// A time after another one, or the end of time.
pub(crate) fn later(from: DateTime<Utc>, by: Duration) -> DateTime<Utc> {
    chrono::Duration::from_std(by).ok().and_then(|by| from.checked_add_signed(by)).unwrap_or(DateTime::<Utc>::MAX_UTC)
}
