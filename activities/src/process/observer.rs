//! Reads the output of a program while it runs, and may end it.

use std::time::Duration;

use tokio::time::Instant;

/// Reads the output of a program while it runs.
pub trait Observer: Send {
    /// Takes the next chunk of its output.
    fn take(&mut self, chunk: &[u8]);

    /// When to end the program, unless output arrives before: it waits in vain.
    fn gives_up_at(&self) -> Option<Instant> {
        None
    }

    /// Asks the program to end by itself, before it is ended; returns how long that may take.
    fn ask_to_end(&mut self) -> Option<Duration> {
        None
    }
}

/// Reads nothing.
pub(super) struct Unobserved;

impl Observer for Unobserved {
    fn take(&mut self, _chunk: &[u8]) {}
}
