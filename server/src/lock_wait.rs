//! Waits for a log that another process holds for a moment or is about to serve.

use super::error::ADVICE;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::error::{Error, Result};

/// Poll interval of the lock and the socket: a process that waits in line for the lock would take
/// it for a moment from the next owner.
const LOOK: Duration = Duration::from_millis(50);
/// Delay before the user is informed of the wait.
pub(crate) const SOON: Duration = Duration::from_secs(2);
/// How long one owner may hold the log without a response.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(30);

/// The current owner of the log, and since when it is seen.
pub(crate) struct LockWait {
    notify: Notify,
    on: Option<(String, Instant)>,
    is_notified: bool,
}

impl LockWait {
    pub(crate) fn new(notify: Notify) -> Self {
        Self { notify, on: None, is_notified: false }
    }

    /// Waits for one poll interval. The timeout starts anew with each owner, so a queue of commands
    /// that make progress does not time out.
    pub(crate) async fn poll(&mut self, data_dir: &Path, process: String) -> Result<()> {
        // A new owner writes its process id a moment after it takes the lock.
        let since = match &self.on {
            Some((known, since)) if *known == process => *since,
            _ => Instant::now(),
        };
        self.on = Some((process.clone(), since));
        let waited = since.elapsed();
        if waited > silence_timeout() {
            let data_dir = data_dir.display();
            let seconds = waited.as_secs();
            return Err(Error::operational(format!(
                "process {process} has the log in {data_dir} and does not answer for {seconds} \
                 seconds: {ADVICE}"
            )));
        }
        if waited > SOON && !self.is_notified {
            self.is_notified = true;
            (self.notify)(&format!("waiting for process {process}, which has the log open"));
        }
        tokio::time::sleep(LOOK).await;
        Ok(())
    }
}

pub(crate) fn silence_timeout() -> Duration {
    let configured = std::env::var("LONGHAUL_WAIT").ok().and_then(|seconds| seconds.parse().ok());
    configured.map_or(SILENCE_TIMEOUT, Duration::from_secs)
}

/// Callback that prints a notice about a wait.
pub type Notify = fn(&str);
