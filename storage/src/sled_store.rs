//! The event log on disk.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use async_trait::async_trait;
use longhaul_engine::store::{Commit, Committed, Delivery};
use longhaul_engine::{Event, EventStore, Message, Payload, Position, RunId, StoreError, Summary};

use crate::blob::{BlobStore, NewBlob};
use crate::codec::Encoder;
use crate::committer::Committer;
use crate::flaw::Flaw;
use crate::group::Writer;
use crate::ledger::Ledger;
use crate::open::{self, Opened};
use crate::order::{Answer, Order};
use crate::poison::Poison;
use crate::quiet::caught;
use crate::read::{Effort, Reader};
use crate::space::{self, Probe, Watch};
use crate::statistics::{Counters, Statistics};

/// The event log of one data directory. One process at a time has it open.
#[derive(Debug)]
pub struct SledStore {
    pub(crate) shared: Arc<Shared>,
    committer: Arc<Committer>,
    writer: Option<JoinHandle<()>>,
}

/// What reads need; the lock goes last, when nobody can write any more.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) directory: PathBuf,
    pub(crate) reader: Reader,
    /// Held while a group is written; see [`Writer::still`].
    pub(crate) still: Arc<Mutex<()>>,
    /// Shared by those whose blobs are written and not yet named by a record; alone with it, one sees which are in use.
    pub(crate) blobs_in_use: tokio::sync::RwLock<()>,
    /// Shared by pictures of the log, whose blobs stay until they are gone.
    pub(crate) pictures: Arc<tokio::sync::RwLock<()>>,
    space: Arc<Watch>,
    poison: Arc<Poison>,
    counters: Arc<Counters>,
    pub(crate) epoch: u64,
    _lock: std::fs::File,
}

impl Shared {
    /// Makes blobs durable, if there is room for them.
    fn write(&self, blobs: &[NewBlob]) -> Result<(), StoreError> {
        let bytes = blobs.iter().map(|blob| blob.content.as_bytes().len()).sum();
        self.space.check(bytes)?;
        blobs.iter().try_for_each(|blob| self.reader.blobs.write(blob))
    }
}

/// Ways to open a log that only tests need.
#[doc(hidden)]
#[derive(Clone)]
pub struct OpenOptions {
    /// Off: what is acknowledged may be lost in a power cut.
    pub sync: bool,
    /// Where the number of free bytes comes from.
    pub free_space: Option<Probe>,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self { sync: true, free_space: None }
    }
}

impl SledStore {
    /// Opens or creates the log in a data directory. Blocks while it is read, a second or so for a million events.
    pub fn open(directory: &Path) -> Result<Self, StoreError> {
        Self::open_with(directory, OpenOptions::default())
    }

    #[doc(hidden)]
    pub fn open_with(directory: &Path, options: OpenOptions) -> Result<Self, StoreError> {
        let Opened { db, file, epoch, lock } = open::open(directory)?;
        let poison = Arc::new(Poison::default());
        let still = Arc::<Mutex<()>>::default();
        let counters = Arc::new(Counters::default());
        let blobs = Arc::new(BlobStore::open(directory.join("blobs"), Arc::clone(&poison))?);
        let space = Arc::new(Watch::new(options.free_space.unwrap_or_else(|| space::probe_of(directory))));
        let tree: sled::Tree = (*db).clone();
        let writer = Writer {
            tree: tree.clone(),
            file,
            sync: options.sync,
            poison: Arc::clone(&poison),
            counters: Arc::clone(&counters),
            still: Arc::clone(&still),
            directory: directory.to_owned(),
            epoch,
        };
        let committer = Committer::new(
            Ledger::new(tree, Arc::clone(&blobs)),
            // No owner gives out four thousand million messages, so the numbers of two owners never meet.
            epoch << 32,
            Arc::clone(&space),
            Arc::clone(&poison),
        );
        let committer = Arc::new(committer);
        let groups = Arc::clone(&committer);
        let writer = std::thread::Builder::new()
            .name("committer".into())
            .spawn(move || writer.run(&groups))
            .map_err(|error| StoreError::Unusable(format!("no thread for the committer: {error}")))?;
        let (directory, reader) = (directory.to_owned(), Reader { db, blobs });
        let (blobs_in_use, pictures) = (tokio::sync::RwLock::default(), Arc::default());
        let shared =
            Shared { directory, reader, still, blobs_in_use, pictures, space, poison, counters, epoch, _lock: lock };
        Ok(Self { shared: Arc::new(shared), committer, writer: Some(writer) })
    }

    /// The number of this ownership: one more than that of the owner before.
    pub fn epoch(&self) -> u64 {
        self.shared.epoch
    }

    /// The data directory.
    pub fn directory(&self) -> &Path {
        &self.shared.directory
    }

    /// What was written since the log was opened.
    pub fn statistics(&self) -> Statistics {
        self.shared.counters.read()
    }

    /// Waits until all that was asked for is written, and lets go of the directory.
    pub fn close(self) {
        drop(self);
    }

    /// Sends an order, after its blobs are durable, and waits for the answer.
    pub(crate) async fn order(
        &self,
        order: Box<Order>,
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
        self.committer.accept(order)?;
        answer.await.unwrap_or_else(|_| Err(StoreError::Poisoned("the committer is gone".into())))
    }

    /// Reads at once what needs little, and in a thread of its own what needs a blob or is long.
    async fn read_with<T: Send + 'static>(
        &self,
        read: impl Fn(&Reader, Effort) -> Result<T, Flaw> + Send + 'static,
    ) -> Result<T, StoreError> {
        match guarded(|| read(&self.shared.reader, Effort::Little)) {
            Err(Flaw::TooMuch) => {}
            result => return result.map_err(unnamed),
        }
        let shared = Arc::clone(&self.shared);
        blocking(move || guarded(|| read(&shared.reader, Effort::Any)).map_err(unnamed)).await
    }
}

/// Readers name the records in their errors; this is for what is left.
pub(crate) fn unnamed(flaw: Flaw) -> StoreError {
    flaw.in_record(|| "record of the log".into())
}

/// sled panics on some damage; to us that is one more way of being damaged.
pub(crate) fn guarded<T>(read: impl FnOnce() -> Result<T, Flaw>) -> Result<T, Flaw> {
    caught(read).unwrap_or_else(|panic| Err(Flaw::Damaged(panic)))
}

/// Runs work that may wait for the disk where it holds up nobody.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(StoreError::Unusable(format!("the log could not be used: {error}"))))
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
impl EventStore for SledStore {
    async fn commit(&self, commit: Commit) -> Result<Committed, StoreError> {
        let mut encoder = Encoder::default();
        let (order, answer) = Order::of(&commit, &mut encoder)?;
        drop(commit);
        self.order(order, encoder, answer).await
    }

    async fn deliver(&self, delivery: Delivery) -> Result<Option<Message>, StoreError> {
        let mut encoder = Encoder::default();
        let (order, answer) = Order::delivering(&delivery, &mut encoder)?;
        let committed = self.order(order, encoder, answer).await?;
        Ok(committed.delivered.into_iter().next().flatten())
    }

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
        self.read_with(move |reader, effort| reader.published(&run, effort)).await
    }
}
