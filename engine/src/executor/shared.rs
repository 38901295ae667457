//! State shared by all activations of all runs.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::{broadcast, watch};

use crate::activity::Handlers;
use crate::clock::Clock;
use crate::context::Stop;
use crate::event::{Event, Outcome};
use crate::id::RunId;
use crate::store::{Creation, EventLog, StoreError};
use crate::workflow::Workflows;

use super::inbox::Inbox;
use super::pools::{Pools, Prefetch};
use super::timers::Timers;

/// The limits of an engine.
#[derive(Debug, Clone)]
pub struct Options {
    /// The slots of each pool. A pool without an entry has no limit.
    pub pools: Vec<(String, usize)>,
    /// The pools whose calls prepare those of another pool.
    pub prefetch: Vec<Prefetch>,
    /// The most runs that wait in memory; a further run leaves it at once.
    pub resident_waiting: usize,
    /// How long a run waits in memory before it leaves it.
    pub idle: Duration,
    /// The runs to adopt: `"a"` is the run `a` and all below it (`a/…`), the empty string is every
    /// run. Messages to other runs stay in their mailboxes until they are adopted.
    pub adopted: Vec<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            pools: Vec::new(),
            prefetch: Vec::new(),
            resident_waiting: 1000,
            idle: Duration::from_secs(10),
            adopted: vec![String::new()],
        }
    }
}

/// A change of one run: events were just made durable, a message was put into its mailbox, or it
/// became stuck in this process or was freed.
#[derive(Debug, Clone)]
pub struct Change {
    /// The run.
    pub run: RunId,
    /// The events, in order; empty for a message or a stuck run.
    pub events: Vec<Event>,
}

/// Starts to drive a run that is registered in memory; the creation is that of a new run.
pub(super) type Drive = fn(Arc<Shared>, RunId, Arc<Inbox>, Option<Creation>);

/// State shared by all activations of all runs.
pub(crate) struct Shared {
    pub(crate) store: Arc<dyn EventLog>,
    pub(crate) workflows: Workflows,
    pub(crate) handlers: Handlers,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) options: Options,
    pub(crate) pools: Pools,
    pub(super) timers: Timers,
    pub(super) changes: broadcast::Sender<Arc<Change>>,
    pub(super) stopping: watch::Sender<bool>,
    /// The number of runs in memory; changes when an activation begins or ends.
    pub(super) activations: watch::Sender<usize>,
    /// Runs that are stuck in this process, with the reasons: divergence, or an error of the log.
    pub(super) stuck: Mutex<BTreeMap<RunId, Stop>>,
    residents: Mutex<HashMap<RunId, Arc<Inbox>>>,
    adopted: Mutex<Vec<String>>,
    waiting: AtomicUsize,
    drive: Drive,
    this: Weak<Shared>,
}

/// A permit to wait in memory.
pub(crate) struct WaitPermit<'a>(&'a AtomicUsize);

impl Drop for WaitPermit<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Shared {
    pub(super) fn new(
        store: Arc<dyn EventLog>,
        workflows: Workflows,
        handlers: Handlers,
        clock: Arc<dyn Clock>,
        options: Options,
        drive: Drive,
    ) -> Arc<Self> {
        Arc::new_cyclic(|this| Self {
            store,
            workflows,
            handlers,
            clock,
            pools: Pools::new(&options.pools, &options.prefetch),
            options,
            timers: Timers::default(),
            changes: broadcast::channel(4096).0,
            stopping: watch::channel(false).0,
            activations: watch::channel(0).0,
            stuck: Mutex::default(),
            residents: Mutex::default(),
            adopted: Mutex::default(),
            waiting: AtomicUsize::new(0),
            drive,
            this: this.clone(),
        })
    }

    /// Tells the subscribers of a change that is durable.
    pub(super) fn notify(&self, change: Change) {
        // There may be no subscriber.
        let _ = self.changes.send(Arc::new(change));
    }

    /// Forgets that a run was stuck.
    pub(super) fn clear_stuck(&self, run: &RunId) {
        if self.stuck().remove(run).is_some() {
            self.notify(Change { run: run.clone(), events: Vec::new() });
        }
    }

    /// Marks a run as stuck in this process.
    pub(super) fn set_stuck(&self, run: &RunId, reason: Stop) {
        self.stuck().insert(run.clone(), reason);
        self.notify(Change { run: run.clone(), events: Vec::new() });
    }

    /// Adopts a run and all below it from now on.
    pub(super) fn adopt(&self, root: &str) {
        self.adopted.lock().unwrap_or_else(PoisonError::into_inner).push(root.to_owned());
    }

    pub(super) fn is_adopted(&self, run: &RunId) -> bool {
        let adopted = self.adopted.lock().unwrap_or_else(PoisonError::into_inner);
        adopted.iter().any(|root| root.is_empty() || run.is_within(root))
    }

    /// Activates a run, if it is adopted, not in memory, and the engine is not stopping.
    pub(super) fn wake(&self, run: RunId) {
        if self.is_stopping() || !self.is_adopted(&run) {
            return;
        }
        let mut residents = self.residents();
        if let Some(inbox) = residents.get(&run) {
            inbox.nudge();
            return;
        }
        let inbox = Arc::<Inbox>::default();
        residents.insert(run.clone(), Arc::clone(&inbox));
        drop(residents);
        self.begin(run, inbox, None);
    }

    /// Starts the activation of a run that is registered in memory.
    pub(super) fn begin(&self, run: RunId, inbox: Arc<Inbox>, creation: Option<Creation>) {
        let Some(shared) = self.this.upgrade() else { return };
        self.activations.send_modify(|activations| *activations += 1);
        (self.drive)(shared, run, inbox, creation);
    }

    /// Removes a run from memory, unless its inbox holds unseen messages.
    pub(super) fn release(
        &self,
        run: &RunId,
        inbox: &Inbox,
        stays: impl FnOnce(&Inbox) -> bool,
    ) -> bool {
        // Under the lock, or a message could arrive between the check and the removal.
        let mut residents = self.residents();
        if stays(inbox) {
            return false;
        }
        residents.remove(run);
        drop(residents);
        self.activations.send_modify(|activations| *activations -= 1);
        true
    }

    /// The outcome of a run; `None` if it has not ended or does not exist.
    pub(crate) async fn outcome(&self, run: &RunId) -> Result<Option<Outcome>, StoreError> {
        let Some(summary) = self.store.summary(run).await? else { return Ok(None) };
        if !summary.status.is_terminal() {
            return Ok(None);
        }
        let events = self.store.read(run, summary.origin).await?;
        Ok(events.last().and_then(|event| event.kind.outcome()))
    }

    /// A permit to wait in memory, if one is free.
    pub(crate) fn wait_permit(&self) -> Option<WaitPermit<'_>> {
        let place = WaitPermit(&self.waiting);
        let before = self.waiting.fetch_add(1, Ordering::Relaxed);
        (before < self.options.resident_waiting).then_some(place)
    }

    pub(crate) fn is_stopping(&self) -> bool {
        *self.stopping.borrow()
    }

    /// Resolves when the engine stops.
    pub(crate) async fn stopped(&self) {
        let mut stopping = self.stopping.subscribe();
        if stopping.wait_for(|stopping| *stopping).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    pub(super) fn residents(&self) -> MutexGuard<'_, HashMap<RunId, Arc<Inbox>>> {
        self.residents.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn stuck(&self) -> MutexGuard<'_, BTreeMap<RunId, Stop>> {
        self.stuck.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
