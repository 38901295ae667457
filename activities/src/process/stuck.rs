//! Detects a process that waits for ever, for example for the other end of a pipe.

use std::time::Duration;

use tokio::time::Instant;

use super::tree;

/// The number of looks within the limit.
const LOOKS: u32 = 6;

/// Resolves when a process and its descendants have done nothing for this long: they have used no
/// CPU time and waited for no disk. Never resolves where the system does not tell.
pub(crate) async fn until_stuck(pid: u32, limit: Duration) {
    let mut last = None;
    let mut since = Instant::now();
    loop {
        tokio::time::sleep(limit / LOOKS).await;
        let now = tree::idle_since(pid.cast_signed());
        if now.is_none() || now != last {
            last = now;
            since = Instant::now();
        } else if since.elapsed() >= limit {
            return;
        }
    }
}
