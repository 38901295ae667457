//! Refuses writes before the disk is full, because a write that fails halfway poisons the log.

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use longhaul_engine::StoreError;

/// With fewer free bytes than this no write is accepted: room for sled's background writes, and for
/// the operator.
pub const RESERVE: u64 = 32 * 1024 * 1024;

/// The minimum interval between queries of the disk, except for large writes.
const INTERVAL: Duration = Duration::from_millis(50);

/// The size of a large write.
const LARGE: usize = 1024 * 1024;

/// The source of the number of free bytes.
pub type Probe = Arc<dyn Fn() -> io::Result<u64> + Send + Sync>;

/// The free bytes of the file system of a path.
pub(crate) fn probe_of(path: &Path) -> Probe {
    let path = path.to_owned();
    Arc::new(move || {
        let answer = nix::sys::statvfs::statvfs(&path)?;
        Ok(answer.blocks_available().saturating_mul(answer.fragment_size()))
    })
}

/// The free bytes. A disk that cannot be measured counts as full.
pub(crate) fn free_bytes(probe: &Probe) -> Result<u64, StoreError> {
    probe().map_err(|error| StoreError::Full(format!("the free space cannot be measured: {error}")))
}

/// Tracks the free space for all writers.
pub(crate) struct Watch {
    probe: Probe,
    last: Mutex<Option<(Instant, u64)>>,
}

impl std::fmt::Debug for Watch {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Watch").field("last", &self.last).finish_non_exhaustive()
    }
}

impl Watch {
    pub(crate) fn new(probe: Probe) -> Self {
        Self { probe, last: Mutex::new(None) }
    }

    /// An error if there is no room for `bytes` more.
    pub(crate) fn check(&self, bytes: usize) -> Result<(), StoreError> {
        let needed = RESERVE.saturating_add(bytes as u64);
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let known = last.filter(|(measured, free)| {
            measured.elapsed() < INTERVAL && *free >= needed && bytes < LARGE
        });
        let (measured, free) = match known {
            Some(known) => known,
            None => (Instant::now(), free_bytes(&self.probe)?),
        };
        *last = Some((measured, free.saturating_sub(bytes as u64)));
        if free >= needed {
            return Ok(());
        }
        Err(StoreError::Full(format!(
            "{} MiB are free on the disk of the log, but {} MiB are kept in reserve; \
             free some space to continue",
            free >> 20,
            RESERVE >> 20
        )))
    }
}
