//! Waiting for a log that another command has open for a moment, or whose owner is just starting.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::client::Notify;
use crate::error::{Error, Result};

/// How often it is looked whether the log is free.
const LOOK: Duration = Duration::from_millis(50);
/// After so long a person is told what is waited for.
pub(crate) const SOON: Duration = Duration::from_secs(2);
/// How long one and the same process may have the log without an answer.
const PATIENCE: Duration = Duration::from_secs(30);
/// What to do about it.
pub(crate) const ADVICE: &str = "look what it does, or end it; LONGHAUL_WAIT=SECONDS waits longer";

/// Whoever has the log, and since when.
pub(crate) struct LockWait {
    notify: Notify,
    on: Option<(String, Instant)>,
    is_said: bool,
}

impl LockWait {
    pub(crate) fn new(notify: Notify) -> Self {
        Self { notify, on: None, is_said: false }
    }

    /// Waits a little for the process that has the log: each gets the whole of our patience, so
    /// that a queue of commands that all do their work is no reason to give up.
    pub(crate) async fn a_little(&mut self, data_dir: &Path, process: String) -> Result<()> {
        // Whoever takes the lock writes its name a moment later.
        let since = match &self.on {
            Some((known, since)) if *known == process => *since,
            _ => Instant::now(),
        };
        self.on = Some((process.clone(), since));
        let waited = since.elapsed();
        if waited > patience() {
            let (data_dir, seconds) = (data_dir.display(), waited.as_secs());
            return Err(Error::operational(format!(
                "process {process} has the log in {data_dir} and does not answer for {seconds} seconds: {ADVICE}"
            )));
        }
        if waited > SOON && !self.is_said {
            self.is_said = true;
            (self.notify)(&format!("waiting for process {process}, which has the log open"));
        }
        tokio::time::sleep(LOOK).await;
        Ok(())
    }
}

pub(crate) fn patience() -> Duration {
    let told = std::env::var("LONGHAUL_WAIT").ok().and_then(|seconds| seconds.parse().ok());
    told.map_or(PATIENCE, Duration::from_secs)
}
