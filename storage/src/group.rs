//! Commits that are written together, and the one place where anything is written.

use std::fs::File;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use longhaul_engine::StoreError;
use longhaul_engine::store::Committed;
use tokio::sync::oneshot;

use crate::committer::Committer;
use crate::key;
use crate::open::closed_record;
use crate::order::Write;
use crate::poison::Poison;
use crate::quiet::caught;
use crate::salvage::end;
use crate::statistics::{Counters, Statistics};
use crate::witness::{State, Witness};

/// Commits that were accepted and are to be written as one.
#[derive(Debug, Default)]
pub(crate) struct Group {
    batch: sled::Batch,
    writes: usize,
    pub(crate) size: Statistics,
    pub(crate) answers: Vec<Accepted>,
}

/// A commit that was accepted, and whom to tell.
pub(crate) type Accepted = (oneshot::Sender<Result<Committed, StoreError>>, Committed);

impl Group {
    pub(crate) fn write(&mut self, (key, value): Write) {
        self.writes += 1;
        self.size.bytes += (key.len() + value.as_ref().map_or(0, |value| value.len())) as u64;
        match value {
            Some(value) => self.batch.insert(key, value),
            None => self.batch.remove(key),
        }
    }
}

/// The writing end of a log: one thread, which writes one group at a time.
pub(crate) struct Writer {
    pub(crate) tree: sled::Tree,
    /// Our own descriptor of sled's file, for the sync that sled leaves out.
    pub(crate) file: File,
    /// Off only in the test that shows that the power-cut test can fail.
    pub(crate) sync: bool,
    pub(crate) poison: Arc<Poison>,
    pub(crate) counters: Arc<Counters>,
    /// Held while a group is written, so that a picture of the log is of whole groups that are durable.
    pub(crate) still: Arc<Mutex<()>>,
    /// The data directory, and the number of this ownership.
    pub(crate) directory: PathBuf,
    pub(crate) epoch: u64,
}

impl Writer {
    /// Works until nothing more will come.
    pub(crate) fn run(self, committer: &Committer) {
        while let Some(group) = committer.next() {
            self.write(group);
        }
        self.close();
    }

    /// Makes a group durable, then tells everybody.
    fn write(&self, group: Group) {
        let Group { batch, writes, size, answers } = group;
        let written = self.poison.check().and_then(|()| if writes == 0 { Ok(()) } else { self.apply_guarded(batch) });
        self.counters.add(Statistics { groups: u64::from(size.bytes > 0), commits: answers.len() as u64, ..size });
        for (reply, committed) in answers {
            let _ = reply.send(written.clone().map(|()| committed));
        }
    }

    fn apply_guarded(&self, batch: sled::Batch) -> Result<(), StoreError> {
        match caught(|| self.apply(batch)) {
            Ok(written) => written.map_err(|reason| self.poison.set(reason)),
            Err(panic) => Err(self.poison.set(format!("sled panicked: {panic}"))),
        }
    }

    /// Nothing is durable before the last line: sled's flush hands the bytes to the kernel and no further.
    fn apply(&self, batch: sled::Batch) -> Result<(), String> {
        let _writing = self.still.lock().unwrap_or_else(PoisonError::into_inner);
        self.tree.apply_batch(batch).map_err(|error| format!("writing the log: {error}"))?;
        self.tree.flush().map_err(|error| format!("flushing the log: {error}"))?;
        if self.sync {
            self.file.sync_data().map_err(|error| format!("syncing the log: {error}"))?;
        }
        Ok(())
    }

    /// The last word of this owner, by which the next one knows that the log has its end.
    fn close(&self) {
        let closed = caught(|| self.mark_closed());
        if let Err(reason) = closed.unwrap_or_else(Err) {
            tracing::warn!(reason, "the log is whole, and could not be marked as closed");
        }
    }

    fn mark_closed(&self) -> Result<(), String> {
        self.poison.check().map_err(|error| error.to_string())?;
        let mut batch = sled::Batch::default();
        for key in self.tree.scan_prefix(key::CLOSED).keys() {
            batch.remove(key.map_err(|error| error.to_string())?);
        }
        let (key, value) = closed_record(self.epoch).map_err(|error| error.to_string())?;
        batch.insert(key, value.unwrap_or_default());
        self.apply(batch)?;
        let end = end(&self.directory.join("log")).map_err(|error| error.to_string())?;
        let witness = Witness { epoch: self.epoch, state: State::Closed, end };
        witness.write(&self.directory).map_err(|error| error.to_string())
    }
}
