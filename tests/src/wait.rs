//! Waiting for what other processes do.

use std::time::{Duration, Instant};

/// How long a test waits for what must come: a machine may be busy, and what never comes may take
/// its time.
pub const PATIENCE: Duration = Duration::from_mins(5);

/// Waits until something holds.
#[track_caller]
pub fn until(what: &str, holds: impl Fn() -> bool) {
    let begun = Instant::now();
    loop {
        // Before it is looked at: who was held up between the two must look again.
        let waited = begun.elapsed();
        if holds() {
            return;
        }
        assert!(waited < PATIENCE, "waited {waited:?} in vain: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}
