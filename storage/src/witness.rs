//! A word beside the log about how far it went: sled takes damage near the end of its file for the end, and says nothing.
//!
//! The file `witness` holds the epoch of the last owner, and whether that one closed the log in order, with the place where
//! the log ended at that time. It is written after
//! what it vouches for is durable in the log: the record of the owner, or its record of having closed. So a log that does
//! not have these any more has lost its end, and with it histories that somebody paid for.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use longhaul_engine::StoreError;

use crate::files;
use crate::flaw::io;
use crate::key;
use crate::ledger::unreadable;

const NAME: &str = "witness";
const TEMPORARY: &str = "witness.new";

/// What the file says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Witness {
    pub(crate) epoch: u64,
    pub(crate) state: State,
    /// How far the log was written then, counted over all that was ever written.
    pub(crate) end: Option<u64>,
}

/// How it stands with the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// The owner of the epoch has it open, or died.
    Open,
    /// The owner of the epoch closed it in order; nothing was written since.
    Closed,
    /// The owner of the epoch closed it in order, and the next one has begun to open it.
    Opening,
}

impl State {
    fn word(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Closed => "closed",
            Self::Opening => "opening",
        }
    }

    /// Open, if nobody knows the word: then nothing is promised of the log.
    fn of(word: &str) -> Self {
        match word {
            "closed" => Self::Closed,
            "opening" => Self::Opening,
            _ => Self::Open,
        }
    }
}

impl Witness {
    /// Writes the file, durably.
    pub(crate) fn write(self, directory: &Path) -> Result<(), StoreError> {
        let (new, path) = (directory.join(TEMPORARY), directory.join(NAME));
        let write = || {
            let mut file = File::create(&new)?;
            let end = self.end.map(|end| format!(" {end}")).unwrap_or_default();
            writeln!(file, "{} {}{end}", self.epoch, self.state.word())?;
            file.sync_all()?;
            std::fs::rename(&new, &path)
        };
        write().map_err(|error| io("writing", &path, &error))?;
        files::sync_directory(directory)
    }

    /// What was written last; nothing if that cannot be read: it is no reason to refuse a log that can.
    pub(crate) fn read(directory: &Path) -> Option<Self> {
        let text = std::fs::read_to_string(directory.join(NAME)).ok()?;
        let mut words = text.split_ascii_whitespace();
        let (epoch, word) = (words.next()?, words.next()?);
        let end = words.next().and_then(|end| end.parse().ok());
        Some(Self { epoch: epoch.parse().ok()?, state: State::of(word), end })
    }

    /// Says that the log is written to from now on, for one that says that it is closed.
    pub(crate) fn opening(self, directory: &Path) -> Result<(), StoreError> {
        match self.state {
            State::Closed => Self { state: State::Opening, ..self }.write(directory),
            State::Open | State::Opening => Ok(()),
        }
    }
}

/// Removes the file: the log that it speaks of was replaced.
pub(crate) fn remove(directory: &Path) -> Result<(), StoreError> {
    files::remove(&directory.join(NAME))
}

/// Removes what a process left that died while it wrote the file.
pub(crate) fn remove_temporary(directory: &Path) -> Result<(), StoreError> {
    files::remove(&directory.join(TEMPORARY))
}

/// Refuses a log that has lost its end.
pub(crate) fn check(db: &sled::Db, directory: &Path, last_epoch: u64) -> Result<(), StoreError> {
    let Some(witness) = Witness::read(directory) else { return Ok(()) };
    let was_closed = witness.state != State::Open;
    let is_closed = || db.contains_key(key::closed(witness.epoch)).map_err(|error| unreadable(&error));
    if witness.epoch <= last_epoch && (!was_closed || is_closed()?) {
        return Ok(());
    }
    Err(StoreError::Unopenable {
        log: directory.join("log").display().to_string(),
        reason: format!("it has lost its end, what owner {} wrote, and maybe more", witness.epoch),
    })
}
