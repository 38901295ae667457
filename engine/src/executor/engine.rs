//! The handle of the embedded engine.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::broadcast;

use crate::activity::Handlers;
use crate::client::{Client, NewRun, Started};
use crate::clock::Clock;
use crate::context::{EngineError, Stop};
use crate::event::{Cause, Event, EventKind, MessageBody, Outcome, RequestedBy};
use crate::id::RunId;
use crate::payload::Payload;
use crate::store::{Commit, Creation, Delivery, EventLog, StoreError};
use crate::summary::{Status, Summary};
use crate::workflow::Workflows;

use super::drive::drive;
use super::pools::Share;
use super::shared::{Change, Options, Shared};

/// The parts of an engine.
pub struct Parts {
    /// The log.
    pub store: Arc<dyn EventLog>,
    /// The workflows.
    pub workflows: Workflows,
    /// The activity handlers.
    pub handlers: Handlers,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// The limits.
    pub options: Options,
}

/// An engine that owns a log. Cheap to clone; dropping the last handle does not stop it,
/// [`Engine::stop`] does.
#[derive(Clone)]
pub struct Engine(Arc<Shared>);

impl Engine {
    /// Opens an engine on a log and adopts the runs that its options name.
    pub async fn open(parts: Parts) -> Result<Self, StoreError> {
        let Parts { store, workflows, handlers, clock, options } = parts;
        // Driving a run needs the shared state, which drives new runs: so it is passed in.
        let drive = |shared, run, inbox, creation| {
            tokio::spawn(drive(shared, run, inbox, creation));
        };
        let shared = Shared::new(store, workflows, handlers, clock, options, drive);
        tokio::spawn(keep_time(Arc::clone(&shared)));
        let engine = Self(shared);
        for root in engine.0.options.adopted.clone() {
            engine.adopt(&root).await?;
        }
        Ok(engine)
    }

    /// Adopts a run and all below it: unfinished runs with pending work continue.
    pub async fn adopt(&self, root: &str) -> Result<(), StoreError> {
        let shared = &self.0;
        shared.adopt(root);
        for (run, summary) in shared.store.runs(root).await? {
            match summary.status {
                // A machine failure of another process is retried at once: the cause may be gone.
                Status::Running | Status::Parked(_) | Status::Waiting { machine: Some(_), .. } => {
                    shared.wake(run);
                }
                Status::Waiting { until: Some(until), .. } => shared.timers.add(until, run),
                _ => {}
            }
        }
        for run in shared.store.runs_with_mail().await? {
            let over = shared
                .store
                .summary(&run)
                .await?
                .is_none_or(|summary| summary.status.is_terminal());
            if !over {
                shared.wake(run);
            }
        }
        Ok(())
    }

    /// Starts a run, or joins it if it exists.
    pub async fn start(&self, new: NewRun) -> Result<Started, StoreError> {
        let event = self.beginning(0, &new, Cause::Started);
        let summary = Summary::begin(&event).expect("the event is a RunStarted");
        let mut commit = Commit::of(new.run.clone(), Vec::new());
        commit.creations.push(Creation { run: new.run.clone(), event, summary });
        if self.0.record(commit).await?.created == [true] {
            return Ok(Started::New);
        }
        let summary = self.0.store.summary(&new.run).await?;
        let over = summary.is_some_and(|summary| summary.status.is_terminal());
        Ok(if over { Started::Over } else { Started::Joined })
    }

    /// Starts a finished run again, with fresh input, under the same id. Unread messages are
    /// discarded: they were for the run that ended.
    pub async fn restart(&self, new: NewRun) -> Result<(), StoreError> {
        let unknown = || StoreError::UnknownRun(new.run.clone());
        let mut summary = self.0.store.summary(&new.run).await?.ok_or_else(unknown)?;
        let end = self
            .0
            .store
            .read(&new.run, summary.origin)
            .await?
            .last()
            .map_or(0, |event| event.position + 1);
        let event = self.beginning(end, &new, Cause::Restarted);
        summary.apply(&event);
        let mut commit = Commit::of(new.run.clone(), vec![event]);
        commit.summary = Some(summary);
        commit.consumed =
            self.0.store.mailbox(&new.run).await?.into_iter().map(|message| message.seq).collect();
        self.0.record(commit).await?;
        self.0.wake(new.run);
        Ok(())
    }

    /// Creates a run with an initial history atomically, and adopts it. Fails if the run exists.
    pub async fn commit_new_run(&self, commit: Commit) -> Result<(), StoreError> {
        let run = commit.run.clone();
        self.0.record(commit).await?;
        self.0.wake(run);
        Ok(())
    }

    fn beginning(&self, position: u64, new: &NewRun, cause: Cause) -> Event {
        let kind = EventKind::RunStarted {
            workflow: new.workflow.clone(),
            input: new.input.clone(),
            parent: None,
            labels: new.labels.clone(),
            cause,
        };
        Event { position, at: self.0.clock.now(), kind }
    }

    /// Sets how the runs of a project (the first part of their ids) share the pools, from now on.
    pub fn share(&self, project: &str, share: Share) {
        self.0.pools.share(project, share);
    }

    /// Sets the limit of a pool for projects with this label, from now on.
    pub fn limit(&self, pool: &str, label: &str, most: usize) {
        self.0.pools.limit(pool, label, most);
    }

    /// Sets the number of slots of a pool, which may be new, from now on; calls in progress keep
    /// theirs.
    pub fn resize(&self, pool: &str, size: usize) {
        self.0.pools.resize(pool, size);
    }

    /// The runs with an activity that waits for a slot of a pool, and the pool.
    pub fn queued(&self) -> BTreeMap<RunId, String> {
        self.0.pools.queued()
    }

    /// Puts a signal into a run's mailbox. `false`: the run is over.
    pub async fn signal(
        &self,
        to: &RunId,
        name: &str,
        payload: Payload,
    ) -> Result<bool, StoreError> {
        self.deliver(to, MessageBody::signal(name, payload)).await
    }

    /// Puts a message into a run's mailbox. `false`: the run is over.
    pub async fn deliver(&self, to: &RunId, body: MessageBody) -> Result<bool, StoreError> {
        if matches!(body, MessageBody::Terminate(_)) {
            // A termination applies even to a stuck run; if that fails, the run is stuck again.
            self.0.clear_stuck(to);
        }
        let delivery = Delivery { to: to.clone(), at: self.0.clock.now(), body };
        self.0.deliver(delivery).await
    }

    /// The log.
    pub fn store(&self) -> &Arc<dyn EventLog> {
        &self.0.store
    }

    /// Subscribes to changes of all runs. A reader that lags receives the number of missed changes.
    pub fn changes(&self) -> broadcast::Receiver<Arc<Change>> {
        self.0.changes.subscribe()
    }

    /// The runs that are stuck in this process, with the reasons.
    pub fn stuck(&self) -> BTreeMap<RunId, Stop> {
        self.0.stuck().clone()
    }

    /// Waits for the outcome of a run; an error if it is stuck.
    pub async fn outcome(&self, run: &RunId) -> Result<Outcome, StoreError> {
        let mut activations = self.0.activations.subscribe();
        loop {
            activations.borrow_and_update();
            if let Some(outcome) = self.0.outcome(run).await? {
                return Ok(outcome);
            }
            if let Some(reason) = self.0.stuck().get(run) {
                return Err(StoreError::Unusable(format!("run {run} is stuck: {reason}")));
            }
            if activations.changed().await.is_err() {
                return Err(StoreError::Unusable("the engine stopped".into()));
            }
        }
    }

    /// How many runs are in memory.
    pub fn resident_runs(&self) -> usize {
        *self.0.activations.borrow()
    }

    /// Stops: attempts under way are cancelled, nothing more is recorded, all runs leave memory.
    pub async fn stop(&self) {
        self.0.stopping.send_replace(true);
        let mut activations = self.0.activations.subscribe();
        let _ = activations.wait_for(|activations| *activations == 0).await;
    }
}

#[async_trait]
impl Client for Engine {
    async fn start(&self, new: NewRun) -> Result<Started, EngineError> {
        Self::start(self, new).await.map_err(EngineError::new)
    }

    async fn signal(&self, run: &RunId, name: &str, payload: Payload) -> Result<bool, EngineError> {
        Self::signal(self, run, name, payload).await.map_err(EngineError::new)
    }

    async fn cancel(&self, run: &RunId, request: RequestedBy) -> Result<bool, EngineError> {
        self.deliver(run, MessageBody::Cancel(request)).await.map_err(EngineError::new)
    }

    async fn outcome(&self, run: &RunId) -> Result<Outcome, EngineError> {
        Self::outcome(self, run).await.map_err(EngineError::new)
    }

    async fn published(&self, run: &RunId) -> Result<BTreeMap<String, Payload>, EngineError> {
        self.0.store.published(run).await.map_err(EngineError::new)
    }
}

/// Wakes runs when their time has come, until the engine stops.
pub(super) async fn keep_time(shared: Arc<Shared>) {
    loop {
        while let Some(run) = shared.timers.take_due(shared.clock.now()) {
            shared.wake(run);
        }
        let next = shared.timers.next();
        let time = async {
            match next {
                Some(next) => shared.clock.sleep_until(next).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = time => {}
            () = shared.timers.changed.notified() => {}
            () = shared.stopped() => return,
        }
    }
}
