//! The service over an open log: in the process that owns it, or in a command that opened a log at
//! rest.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chrono::{DateTime, Utc};
use longhaul_activities::git::GitHandlers;
use longhaul_engine::{Engine, RunId, RunReader, Stop, StoreError, Summary};
use longhaul_storage::SledStore;
use tokio::sync::RwLock;
use tokio::task::AbortHandle;

use crate::edited::Edited;
use crate::owner::Owner;
use crate::request::RequestError;

/// A log and, if this process runs it, its engine.
pub struct Service {
    pub(crate) store: Arc<dyn RunReader>,
    /// The same log with operations that only an on-disk log has.
    pub(crate) log: Arc<SledStore>,
    pub(crate) engine: Option<Engine>,
    /// The projects that this process serves.
    pub(crate) served: Mutex<BTreeMap<RunId, ServedProject>>,
    /// The batches that this process runs.
    pub(crate) batches: OpenBatches,
    /// Shared with the engine: its locks serialise the git commands of one repository.
    pub(crate) git: GitHandlers,
    /// Lock held from the reset of a feature until its new run is in the log.
    pub(crate) rewinding: tokio::sync::Mutex<()>,
    /// Recorded refusals of requests from sessions.
    pub(crate) refused: RecordedRefusals,
    /// Read-locked by each open request.
    pub(crate) answering: RwLock<()>,
    /// Whether new requests are refused. Read it with `answering` held.
    pub(crate) is_closed: AtomicBool,
}

impl Service {
    /// A service without an engine, for a log at rest.
    pub(crate) fn at_rest(log: Arc<SledStore>, git: GitHandlers) -> Arc<Self> {
        Self::of(log, None, git)
    }

    /// A service with an engine.
    pub(crate) fn with_engine(log: Arc<SledStore>, engine: Engine, git: GitHandlers) -> Arc<Self> {
        Self::of(log, Some(engine), git)
    }

    fn of(log: Arc<SledStore>, engine: Option<Engine>, git: GitHandlers) -> Arc<Self> {
        let served = Mutex::default();
        let batches = OpenBatches::default();
        let rewinding = tokio::sync::Mutex::default();
        let answering = RwLock::default();
        let is_closed = AtomicBool::new(false);
        let refused = RecordedRefusals::default();
        let store = log.clone();
        Arc::new(Self {
            store,
            log,
            engine,
            served,
            batches,
            git,
            rewinding,
            refused,
            answering,
            is_closed,
        })
    }

    /// The ids of the projects that this process serves.
    pub fn served(&self) -> Vec<RunId> {
        self.lock_served().keys().cloned().collect()
    }

    /// Since when this process serves the project of a run.
    pub(crate) fn served_since(&self, run: &RunId) -> Option<DateTime<Utc>> {
        let served = self.lock_served();
        served.iter().find(|(root, _)| run.is_within(root.as_str())).map(|(_, at)| at.since)
    }

    pub(crate) fn lock_served(&self) -> MutexGuard<'_, BTreeMap<RunId, ServedProject>> {
        self.served.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Refuses new requests, which clients then send to the next owner. Waits until open requests
    /// have their responses.
    pub async fn close(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
        drop(self.answering.write().await);
    }

    /// Accepts requests again.
    pub fn reopen(&self) {
        self.is_closed.store(false, Ordering::SeqCst);
    }

    /// Marks the work trees as unused, so that the next process can reuse them.
    pub(crate) async fn release_work_trees(&self) {
        if let Err(failure) = self.git.release_work_trees().await {
            tracing::warn!(%failure, "the next run makes its work trees again");
        }
    }

    /// The stuck runs of the engine of this process.
    pub(crate) fn stuck_in_engine(&self) -> BTreeMap<RunId, Stop> {
        self.engine.as_ref().map(Engine::stuck).unwrap_or_default()
    }

    /// The summary of an existing run.
    pub(crate) async fn existing(&self, run: &RunId) -> Result<Summary, StoreError> {
        self.store.summary(run).await?.ok_or_else(|| StoreError::UnknownRun(run.clone()))
    }

    /// The work of this process.
    pub(crate) fn owner(&self) -> Owner {
        Owner {
            stuck: self.stuck_in_engine(),
            queued: self.engine.as_ref().map(Engine::queued).unwrap_or_default(),
            is_running: self.engine.is_some(),
            served: self.served().into_iter().chain(self.batches.ids()).collect(),
        }
    }

    /// The engine; an error if this process does not run the log.
    pub(crate) fn running(&self) -> Result<&Engine, RequestError> {
        self.engine.as_ref().ok_or_else(|| RequestError::refused("this log is not being run"))
    }
}

/// The batches that this process runs.
#[derive(Debug, Default)]
pub(crate) struct OpenBatches {
    /// Their numbers of submissions.
    open: Mutex<BTreeMap<RunId, u64>>,
    /// Held while a batch begins projects, and while an order is sent to a batch and its projects.
    pub(crate) steering: tokio::sync::Mutex<()>,
}

impl OpenBatches {
    pub(crate) fn lock(&self) -> MutexGuard<'_, BTreeMap<RunId, u64>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a submission; returns whether it is the first.
    pub(crate) fn open(&self, batch: &RunId) -> bool {
        let mut open = self.lock();
        let count = open.entry(batch.clone()).or_default();
        *count += 1;
        *count == 1
    }

    /// The batches that this process runs.
    pub(crate) fn ids(&self) -> Vec<RunId> {
        self.lock().keys().cloned().collect()
    }

    pub(crate) fn count(&self, batch: &RunId) -> u64 {
        self.lock().get(batch).copied().unwrap_or_default()
    }

    /// Closes it, unless it was submitted again meanwhile.
    pub(crate) fn close(&self, batch: &RunId, seen: u64) -> bool {
        let mut open = self.lock();
        let is_last = open.get(batch).is_none_or(|count| *count == seen);
        if is_last {
            open.remove(batch);
        }
        is_last
    }
}

/// A project that this process serves.
#[derive(Debug)]
pub(crate) struct ServedProject {
    pub(crate) root: PathBuf,
    /// Since when.
    pub(crate) since: DateTime<Utc>,
    pub(crate) tasks: Vec<AbortHandle>,
    /// What the project knows of its list and settings.
    pub(crate) known: Arc<tokio::sync::Mutex<Option<Edited>>>,
}

/// Refusals recorded by this process: once for each verb and call, so that a loop does not fill the
/// history.
#[derive(Debug, Default)]
pub(crate) struct RecordedRefusals(pub(crate) Mutex<BTreeSet<(String, String)>>);
