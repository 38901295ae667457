//! The write side of a log: the only writer.

use std::fs::File;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use longhaul_engine::StoreError;

use crate::committer::{Committer, Group, Reply};
use crate::directory::closed_record;
use crate::error::{Poison, catch_sled_panic};
use crate::key;
use crate::salvage::end;
use crate::shutdown_marker::{ShutdownMarker, State};
use crate::statistics::{Counters, Statistics};

/// The write side of a log: one thread, which writes one group at a time.
pub(crate) struct Writer {
    pub(crate) tree: sled::Tree,
    /// A separate descriptor of sled's file, for the sync that sled omits.
    pub(crate) file: File,
    /// Off only in the test that proves the power-cut test can fail.
    pub(crate) sync: bool,
    pub(crate) poison: Arc<Poison>,
    pub(crate) counters: Arc<Counters>,
    /// Held while a group is written, so that a snapshot contains only whole, durable groups.
    pub(crate) write_lock: Arc<Mutex<()>>,
    /// The data directory, and the epoch of this owner.
    pub(crate) directory: PathBuf,
    pub(crate) epoch: u64,
}

impl Writer {
    /// Writes groups until the committer is closed.
    pub(crate) fn run(self, committer: &Committer) {
        while let Some(group) = committer.next() {
            self.write(group);
        }
        self.close();
    }

    /// Makes a group durable, then completes its commits.
    fn write(&self, group: Group) {
        let Group { batch, writes, size, replies } = group;
        let written = self
            .poison
            .check()
            .and_then(|()| if writes == 0 { Ok(()) } else { self.apply_or_poison(batch) });
        self.counters.add(Statistics {
            groups: u64::from(size.bytes > 0),
            commits: replies.len() as u64,
            ..size
        });
        for Reply { to, committed } in replies {
            let _ = to.send(written.clone().map(|()| committed));
        }
    }

    fn apply_or_poison(&self, batch: sled::Batch) -> Result<(), StoreError> {
        match catch_sled_panic(|| self.apply(batch)) {
            Ok(written) => written.map_err(|reason| self.poison.set(reason)),
            Err(panic) => Err(self.poison.set(format!("sled panicked: {panic}"))),
        }
    }

    /// Nothing is durable before the last line: sled's flush passes the bytes to the kernel only.
    fn apply(&self, batch: sled::Batch) -> Result<(), String> {
        let _writing = self.write_lock.lock().unwrap_or_else(PoisonError::into_inner);
        self.tree.apply_batch(batch).map_err(|error| format!("writing the log: {error}"))?;
        self.tree.flush().map_err(|error| format!("flushing the log: {error}"))?;
        if self.sync {
            self.file.sync_data().map_err(|error| format!("syncing the log: {error}"))?;
        }
        Ok(())
    }

    /// Records that the log is closed, so that the next owner can verify its end.
    fn close(&self) {
        let closed = catch_sled_panic(|| self.mark_closed());
        if let Err(reason) = closed.unwrap_or_else(Err) {
            tracing::warn!(reason, "the log is complete, but could not be marked as closed");
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
        let marker = ShutdownMarker { epoch: self.epoch, state: State::Closed, end };
        marker.write(&self.directory).map_err(|error| error.to_string())
    }
}
