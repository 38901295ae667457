//! Waiting: first in memory, then outside of it.

use chrono::{DateTime, Utc};

use super::activation::{Activation, Retirement};

impl Activation {
    /// Returns when a message arrives or the time has come. A long wait ends this activation.
    pub(super) async fn wait(&self, until: Option<DateTime<Utc>>) {
        debug_assert!(self.unwritten.is_empty(), "decisions are durable before the run waits");
        let Some(_place) = self.shared.wait_permit() else {
            self.retire(Retirement::Suspended(until)).await
        };
        let clock = &self.shared.clock;
        let time = async {
            match until {
                Some(until) => clock.sleep_until(until).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = self.inbox.arrived() => {}
            () = time => {}
            () = self.shared.stopped() => self.retire(Retirement::Stopping).await,
            () = tokio::time::sleep(self.shared.options.idle) => {
                self.retire(Retirement::Suspended(until)).await;
            }
        }
    }
}
