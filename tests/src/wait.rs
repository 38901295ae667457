//! Waiting for what other processes do.

use std::time::{Duration, Instant};

/// Waits until something holds, at most half a minute.
#[track_caller]
pub fn until(what: &str, holds: impl Fn() -> bool) {
    until_within(Duration::from_secs(30), what, holds);
}

/// Waits until something holds, at most so long.
#[track_caller]
pub fn until_within(time: Duration, what: &str, holds: impl Fn() -> bool) {
    let deadline = Instant::now() + time;
    while !holds() {
        assert!(Instant::now() < deadline, "waited {time:?} in vain: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}
