//! Time as the tests want it.

use async_trait::async_trait;
use chrono::{DateTime, TimeZone, Utc};
use longhaul_engine::Clock;
use tokio::sync::watch;

/// A clock that a test moves.
#[derive(Debug, Clone)]
pub struct HeldClock(watch::Sender<DateTime<Utc>>);

impl Default for HeldClock {
    fn default() -> Self {
        let start = Utc.with_ymd_and_hms(2026, 1, 1, 0, 0, 0).single().expect("this is one moment");
        Self(watch::channel(start).0)
    }
}

impl HeldClock {
    /// Moves on.
    pub fn advance(&self, seconds: i64) {
        self.0.send_modify(|now| *now += chrono::Duration::seconds(seconds));
    }
}

#[async_trait]
impl Clock for HeldClock {
    fn now(&self) -> DateTime<Utc> {
        *self.0.borrow()
    }

    async fn sleep_until(&self, until: DateTime<Utc>) {
        let mut now = self.0.subscribe();
        let _ = now.wait_for(|now| *now >= until).await;
    }
}
