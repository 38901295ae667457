//! The trait [`Clock`]: the time.

use async_trait::async_trait;
use chrono::{DateTime, SubsecRound, Utc};

/// Reads the time and waits until a time.
#[async_trait]
pub trait Clock: Send + Sync + 'static {
    /// The time now, in whole microseconds: the log keeps no more, and a workflow must read the
    /// same time in replay.
    fn now(&self) -> DateTime<Utc>;

    /// Returns when `now()` has reached `until`.
    async fn sleep_until(&self, until: DateTime<Utc>);
}

/// The clock of the machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

#[async_trait]
impl Clock for SystemClock {
    fn now(&self) -> DateTime<Utc> {
        Utc::now().trunc_subsecs(6)
    }

    async fn sleep_until(&self, until: DateTime<Utc>) {
        // Short sleeps, because the machine may be suspended or its clock changed meanwhile.
        const NAP: std::time::Duration = std::time::Duration::from_secs(30);
        while let Ok(left) = (until - Utc::now()).to_std() {
            if left.is_zero() {
                return;
            }
            tokio::time::sleep(left.min(NAP)).await;
        }
    }
}
