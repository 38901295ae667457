//! Waiting for a log that another command has open for a moment, or whose owner is just starting.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::term;

/// How often it is looked whether the log is free.
const LOOK: Duration = Duration::from_millis(50);
/// After so long a person is told what is waited for.
pub(super) const SOON: Duration = Duration::from_secs(2);
/// How long one and the same process may have the log without an answer.
const PATIENCE: Duration = Duration::from_secs(30);
/// What to do about it.
pub(super) const ADVICE: &str = "look what it does, or end it; LONGHAUL_WAIT=SECONDS waits longer";

/// Whoever has the log, and since when.
#[derive(Default)]
pub(super) struct Waiting {
    on: Option<(String, Instant)>,
    is_said: bool,
}

impl Waiting {
    /// Waits a little for the process that has the log: each gets the whole of our patience, so that a queue of commands
    /// that all do their work is no reason to give up.
    pub(super) async fn a_little(&mut self, data_dir: &Path, process: String) -> Result<()> {
        // Whoever takes the lock writes its name a moment later.
        let since = match &self.on {
            Some((known, since)) if *known == process => *since,
            _ => Instant::now(),
        };
        self.on = Some((process.clone(), since));
        let waited = since.elapsed();
        if waited > patience() {
            anyhow::bail!(
                "process {process} has the log in {} and does not answer for {} seconds: {ADVICE}",
                data_dir.display(),
                waited.as_secs(),
            );
        }
        if waited > SOON && !self.is_said {
            self.is_said = true;
            term::say(format!("waiting for process {process}, which has the log open"));
        }
        tokio::time::sleep(LOOK).await;
        Ok(())
    }
}

pub(super) fn patience() -> Duration {
    let told = std::env::var("LONGHAUL_WAIT").ok().and_then(|seconds| seconds.parse().ok());
    told.map_or(PATIENCE, Duration::from_secs)
}
