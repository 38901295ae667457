//! The event log on disk.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use async_trait::async_trait;
use longhaul_engine::store::{Commit, Committed, Delivery};
use longhaul_engine::{
    Event, EventLog, Message, Payload, Position, RunId, RunReader, StoreError, Summary,
};

use crate::blob::{BlobStore, NewBlob};
use crate::codec::Encoder;
use crate::committer::Committer;
use crate::directory::DirectoryLock;
use crate::error::{Poison, ReadError, blocking, catch_damage};
use crate::head_cache::HeadCache;
use crate::key::first_seq_of;
use crate::open::{self, OpenedLog};
use crate::read::{Effort, Reader};
use crate::space::{self, Probe, Watch};
use crate::statistics::{Counters, Statistics};
use crate::write_batch::{Answer, WriteBatch};
use crate::writer::Writer;

/// The event log of one data directory. One process at a time has it open.
#[derive(Debug)]
pub struct SledStore {
    pub(crate) shared: Arc<Shared>,
    committer: Arc<Committer>,
    writer: Option<JoinHandle<()>>,
}

/// The state that reads need. The lock is released last, after the last write.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) directory: PathBuf,
    pub(crate) reader: Reader,
    /// Held while a group is written; see [`Writer::write_lock`].
    pub(crate) write_lock: Arc<Mutex<()>>,
    /// Shared by commits whose blobs are written but not yet named by a record; exclusive access
    /// sees which blobs are in use.
    pub(crate) blobs_in_use: tokio::sync::RwLock<()>,
    /// Shared by snapshots of the log: blobs stay until they are dropped.
    pub(crate) snapshot_guards: Arc<tokio::sync::RwLock<()>>,
    space: Arc<Watch>,
    poison: Arc<Poison>,
    counters: Arc<Counters>,
    pub(crate) epoch: u64,
    _lock: DirectoryLock,
}

impl Shared {
    /// Makes blobs durable, if there is room for them.
    fn write(&self, blobs: &[NewBlob]) -> Result<(), StoreError> {
        let bytes = blobs.iter().map(|blob| blob.content.as_bytes().len()).sum();
        self.space.check(bytes)?;
        blobs.iter().try_for_each(|blob| self.reader.blobs.write(blob))
    }
}

/// Options for tests.
#[doc(hidden)]
#[derive(Clone)]
pub struct OpenOptions {
    /// Off: acknowledged commits may be lost in a power cut.
    pub sync: bool,
    /// The source of the number of free bytes.
    pub free_space: Option<Probe>,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self { sync: true, free_space: None }
    }
}

impl SledStore {
    /// Opens or creates the log in a data directory. Blocks while the log is read: about a second
    /// for a million events.
    pub fn open(directory: &Path) -> Result<Self, StoreError> {
        Self::open_with(directory, OpenOptions::default())
    }

    #[doc(hidden)]
    pub fn open_with(directory: &Path, options: OpenOptions) -> Result<Self, StoreError> {
        let OpenedLog { db, file, epoch, lock } = open::open(directory)?;
        let poison = Arc::new(Poison::default());
        let write_lock = Arc::<Mutex<()>>::default();
        let counters = Arc::new(Counters::default());
        let blobs = Arc::new(BlobStore::open(directory.join("blobs"), Arc::clone(&poison))?);
        let space =
            Arc::new(Watch::new(options.free_space.unwrap_or_else(|| space::probe_of(directory))));
        let tree: sled::Tree = (*db).clone();
        let writer = Writer {
            tree: tree.clone(),
            file,
            sync: options.sync,
            poison: Arc::clone(&poison),
            counters: Arc::clone(&counters),
            write_lock: Arc::clone(&write_lock),
            directory: directory.to_owned(),
            epoch,
        };
        let committer = Committer::new(
            HeadCache::new(tree, Arc::clone(&blobs)),
            first_seq_of(epoch),
            Arc::clone(&space),
            Arc::clone(&poison),
        );
        let committer = Arc::new(committer);
        let groups = Arc::clone(&committer);
        let writer = std::thread::Builder::new()
            .name("committer".into())
            .spawn(move || writer.run(&groups))
            .map_err(|error| {
                StoreError::Unusable(format!("no thread for the committer: {error}"))
            })?;
        let directory = directory.to_owned();
        let reader = Reader { db, blobs };
        let blobs_in_use = tokio::sync::RwLock::default();
        let snapshot_guards = Arc::default();
        let shared = Shared {
            directory,
            reader,
            write_lock,
            blobs_in_use,
            snapshot_guards,
            space,
            poison,
            counters,
            epoch,
            _lock: lock,
        };
        Ok(Self { shared: Arc::new(shared), committer, writer: Some(writer) })
    }

    /// The epoch of this owner: one more than that of the previous owner.
    pub fn epoch(&self) -> u64 {
        self.shared.epoch
    }

    /// The data directory.
    pub fn directory(&self) -> &Path {
        &self.shared.directory
    }

    /// Statistics since the log was opened.
    pub fn statistics(&self) -> Statistics {
        self.shared.counters.read()
    }

    /// Waits for all pending writes, and releases the directory.
    pub fn close(self) {
        drop(self);
    }

    /// Submits a batch after its blobs are durable, and waits for the result.
    pub(crate) async fn write(
        &self,
        batch: Box<WriteBatch>,
        encoder: Encoder,
        answer: Answer,
    ) -> Result<Committed, StoreError> {
        self.shared.poison.check()?;
        let mut _in_use = None;
        if !encoder.blobs.is_empty() {
            _in_use = Some(self.shared.blobs_in_use.read().await);
            let shared = Arc::clone(&self.shared);
            blocking(move || shared.write(&encoder.blobs)).await?;
        }
        self.committer.submit(batch)?;
        answer.await.unwrap_or_else(|_| Err(StoreError::Poisoned("the committer is gone".into())))
    }

    /// Small reads run inline; reads of blobs and long ones run on a blocking thread.
    async fn read_with<T: Send + 'static>(
        &self,
        read: impl Fn(&Reader, Effort) -> Result<T, ReadError> + Send + 'static,
    ) -> Result<T, StoreError> {
        match catch_damage(|| read(&self.shared.reader, Effort::Little)) {
            Err(ReadError::TooMuch) => {}
            result => return result.map_err(StoreError::from),
        }
        let shared = Arc::clone(&self.shared);
        blocking(move || {
            catch_damage(|| read(&shared.reader, Effort::Any)).map_err(StoreError::from)
        })
        .await
    }
}

impl Drop for SledStore {
    fn drop(&mut self) {
        self.committer.close();
        if let Some(writer) = self.writer.take() {
            let _ = writer.join();
        }
    }
}

#[async_trait]
impl EventLog for SledStore {
    async fn commit(&self, commit: Commit) -> Result<Committed, StoreError> {
        let mut encoder = Encoder::default();
        let (batch, answer) = WriteBatch::of(&commit, &mut encoder)?;
        drop(commit);
        self.write(batch, encoder, answer).await
    }

    async fn deliver(&self, delivery: Delivery) -> Result<Option<Message>, StoreError> {
        let mut encoder = Encoder::default();
        let (batch, answer) = WriteBatch::delivering(&delivery, &mut encoder)?;
        let committed = self.write(batch, encoder, answer).await?;
        Ok(committed.delivered.into_iter().next().flatten())
    }
}

#[async_trait]
impl RunReader for SledStore {
    async fn read(&self, run: &RunId, from: Position) -> Result<Vec<Event>, StoreError> {
        let run = run.clone();
        self.read_with(move |reader, effort| reader.events(&run, from, effort)).await
    }

    async fn mailbox(&self, run: &RunId) -> Result<Vec<Message>, StoreError> {
        let run = run.clone();
        self.read_with(move |reader, effort| reader.mailbox(&run, effort)).await
    }

    async fn summary(&self, run: &RunId) -> Result<Option<Summary>, StoreError> {
        let run = run.clone();
        self.read_with(move |reader, effort| reader.summary(&run, effort)).await
    }

    async fn runs(&self, prefix: &str) -> Result<Vec<(RunId, Summary)>, StoreError> {
        let prefix = prefix.to_owned();
        self.read_with(move |reader, effort| reader.runs(&prefix, effort)).await
    }

    async fn runs_with_mail(&self) -> Result<Vec<RunId>, StoreError> {
        self.read_with(Reader::runs_with_mail).await
    }

    async fn published(&self, run: &RunId) -> Result<BTreeMap<String, Payload>, StoreError> {
        let run = run.clone();
        self.read_with(move |reader, effort| reader.published(&run, None, effort)).await
    }

    async fn published_except(
        &self,
        run: &RunId,
        key: &str,
    ) -> Result<BTreeMap<String, Payload>, StoreError> {
        let run = run.clone();
        let key = key.to_owned();
        self.read_with(move |reader, effort| reader.published(&run, Some(&key), effort)).await
    }
}
