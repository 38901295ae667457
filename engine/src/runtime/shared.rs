//! State shared by all activations of all runs.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tokio::sync::{broadcast, watch};

use crate::activity::Handlers;
use crate::clock::Clock;
use crate::context::Stop;
use crate::event::{Message, Outcome};
use crate::id::RunId;
use crate::local::{Emitted, Inbox, Pools};
use crate::store::{Commit, Committed, Creation, Delivery, EventLog, StoreError};
use crate::workflow::Workflows;

use super::engine::{Change, Options};
use super::reservation::Reservation;
use super::timers::Timers;

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
    pub(crate) emitted: broadcast::Sender<Arc<Emitted>>,
    pub(super) stopping: watch::Sender<bool>,
    /// The number of runs in memory; changes when an activation begins or ends.
    pub(super) activations: watch::Sender<usize>,
    /// Runs that are stuck in this process, with the reasons: divergence, or an error of the log.
    pub(super) stuck: Mutex<BTreeMap<RunId, Stop>>,
    residents: Mutex<HashMap<RunId, Arc<Inbox>>>,
    adopted: Mutex<Vec<String>>,
    waiting: AtomicUsize,
    this: Weak<Shared>,
}

/// The recipient of a message, with the inbox that it had in memory before.
struct Recipient {
    run: RunId,
    inbox: Option<Arc<Inbox>>,
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
            emitted: broadcast::channel(4096).0,
            stopping: watch::channel(false).0,
            activations: watch::channel(0).0,
            stuck: Mutex::default(),
            residents: Mutex::default(),
            adopted: Mutex::default(),
            waiting: AtomicUsize::new(0),
            this: this.clone(),
        })
    }

    /// Makes a decision durable, then notifies all affected runs and readers.
    pub(crate) async fn record(&self, commit: Commit) -> Result<Committed, StoreError> {
        let reservation: Vec<_> =
            commit.creations.iter().map(|creation| Reservation::new(self, creation)).collect();
        let creations: Vec<RunId> =
            commit.creations.iter().map(|creation| creation.run.clone()).collect();
        let recipients: Vec<_> =
            commit.deliveries.iter().map(|delivery| self.recipient(&delivery.to)).collect();
        // Also without a receiver: one that subscribes during the commit does not see it in the store.
        let change = Change { run: commit.run.clone(), events: commit.events.clone() };
        let committed = self.store.commit(commit).await?;
        for ((run, reservation), created) in
            creations.into_iter().zip(reservation).zip(&committed.created)
        {
            match reservation {
                Some(reservation) if *created => reservation.begin(),
                None if *created => self.wake(run),
                _ => {}
            }
        }
        for (recipient, message) in recipients.into_iter().zip(&committed.delivered) {
            if let Some(message) = message {
                self.hand_over(recipient, message.clone());
            }
        }
        self.notify(change);
        Ok(committed)
    }

    /// Puts a message into the mailbox of a run, and notifies the run. `false`: the run is over.
    pub(super) async fn deliver(&self, delivery: Delivery) -> Result<bool, StoreError> {
        let recipient = self.recipient(&delivery.to);
        let Some(message) = self.store.deliver(delivery).await? else { return Ok(false) };
        let change = Change { run: recipient.run.clone(), events: Vec::new() };
        self.hand_over(recipient, message);
        self.notify(change);
        Ok(true)
    }

    /// Tells the subscribers of a change that is durable.
    fn notify(&self, change: Change) {
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

    /// The recipient of a message that is about to be sent.
    fn recipient(&self, to: &RunId) -> Recipient {
        Recipient { run: to.clone(), inbox: self.residents().get(to).cloned() }
    }

    /// Passes a stored message to its run, in memory or not. A run that was activated after the
    /// message was sent may have read it from the store already, or even taken it: it reads the
    /// store again.
    fn hand_over(&self, to: Recipient, message: Message) {
        // Under the lock, or the run could leave memory before the message is in its inbox.
        if let Some(inbox) = self.residents().get(&to.run) {
            let is_the_same = to.inbox.is_some_and(|known| Arc::ptr_eq(&known, inbox));
            return if is_the_same { inbox.push(message) } else { inbox.nudge() };
        }
        self.wake(to.run);
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
        tokio::spawn(super::drive::drive(shared, run, inbox, creation));
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
