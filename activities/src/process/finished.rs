//! The result of a program.

use std::time::Duration;

/// Why Longhaul ended a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stopped {
    /// It reached a limit.
    Limit,
    /// Its observer gave up.
    GivenUp,
}

/// The result of a program, once all its processes have ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    /// Its exit code; `None` if a signal or a limit ended it.
    pub exit_code: Option<i32>,
    /// The reason if it did not exit by itself: `timed out after 600 s`, `silent for 600 s`,
    /// `killed by signal 9`, `waited in vain`.
    pub ended_by: Option<String>,
    /// Why Longhaul ended it, if it did.
    pub stopped: Option<Stopped>,
    /// Its run time.
    pub duration: Duration,
    /// blake3 of its whole output, in hex.
    pub output_digest: String,
    /// The tail of its output, at most 8 KiB.
    pub output_tail: String,
    /// The file with its output, relative to the data directory; beyond 64 MiB, the middle is
    /// omitted.
    pub log: String,
}

impl Finished {
    /// How it ended, for display: `exit code 1`.
    pub fn ending(&self) -> String {
        match (&self.ended_by, self.exit_code) {
            (Some(reason), _) => reason.clone(),
            (None, Some(code)) => format!("exit code {code}"),
            (None, None) => "no exit code".into(),
        }
    }
}
