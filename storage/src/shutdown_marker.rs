//! Clean-shutdown marker. Detects a truncated log, which sled opens silently.
//!
//! The file `shutdown_marker` holds the epoch of the last owner, whether that owner closed the log,
//! and the end of the log at that time. It is written after the matching record in the log (of the
//! owner or of the close) is durable. So a log without that record is truncated.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use longhaul_engine::StoreError;

use crate::error::{io, unreadable};
use crate::files;
use crate::key;

const NAME: &str = "shutdown_marker";
const TEMPORARY: &str = "shutdown_marker.new";

/// The content of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ShutdownMarker {
    pub(crate) epoch: u64,
    pub(crate) state: State,
    /// The end of the log at that time, as a log sequence number.
    pub(crate) end: Option<u64>,
}

/// The state of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// The owner of the epoch has it open, or died.
    Open,
    /// The owner of the epoch closed it in order; nothing was written since.
    Closed,
    /// The owner of the epoch closed it in order, and the next owner has begun to open it.
    Opening,
}

impl State {
    fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Closed => "closed",
            Self::Opening => "opening",
        }
    }

    /// An unknown state counts as open, which promises nothing about the log.
    fn of(name: &str) -> Self {
        match name {
            "closed" => Self::Closed,
            "opening" => Self::Opening,
            _ => Self::Open,
        }
    }
}

impl ShutdownMarker {
    /// Writes the file, durably.
    pub(crate) fn write(self, directory: &Path) -> Result<(), StoreError> {
        let new = directory.join(TEMPORARY);
        let path = directory.join(NAME);
        // Something else at its path could block, or be followed.
        remove_temporary(directory)?;
        let write = || {
            let mut file = File::create(&new)?;
            let end = self.end.map(|end| format!(" {end}")).unwrap_or_default();
            writeln!(file, "{} {}{end}", self.epoch, self.state.name())?;
            file.sync_all()?;
            std::fs::rename(&new, &path)
        };
        write().map_err(|error| io("writing", &path, &error))?;
        files::sync_directory(directory)
    }

    /// The content; `None` if the file cannot be read: that is no reason to refuse a readable log.
    pub(crate) fn read(directory: &Path) -> Option<Self> {
        let path = directory.join(NAME);
        files::must_be_file(&path).ok()?;
        let text = std::fs::read_to_string(path).ok()?;
        let mut words = text.split_ascii_whitespace();
        let epoch = words.next()?;
        let state = words.next()?;
        let end = words.next().and_then(|end| end.parse().ok());
        Some(Self { epoch: epoch.parse().ok()?, state: State::of(state), end })
    }

    /// Marks a closed log as open for writing.
    pub(crate) fn opening(self, directory: &Path) -> Result<(), StoreError> {
        match self.state {
            State::Closed => Self { state: State::Opening, ..self }.write(directory),
            State::Open | State::Opening => Ok(()),
        }
    }
}

/// Removes the file: its log was replaced.
pub(crate) fn remove(directory: &Path) -> Result<(), StoreError> {
    files::remove(&directory.join(NAME))
}

/// Removes a half-written file of a dead process.
pub(crate) fn remove_temporary(directory: &Path) -> Result<(), StoreError> {
    files::remove(&directory.join(TEMPORARY))
}

/// Refuses a truncated log.
pub(crate) fn check(db: &sled::Db, directory: &Path, last_epoch: u64) -> Result<(), StoreError> {
    let Some(marker) = ShutdownMarker::read(directory) else { return Ok(()) };
    let was_closed = marker.state != State::Open;
    let is_closed =
        || db.contains_key(key::closed(marker.epoch)).map_err(|error| unreadable(&error));
    if marker.epoch <= last_epoch && (!was_closed || is_closed()?) {
        return Ok(());
    }
    Err(StoreError::Unopenable {
        log: directory.join("log").display().to_string(),
        reason: format!("its end is missing: what owner {} wrote, and maybe more", marker.epoch),
    })
}
