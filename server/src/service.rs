//! The service over an open log: in the process that owns it, or in a command that opened a log at
//! rest.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use chrono::{DateTime, Utc};
use longhaul_activities::git::{self, GitHandlers};
use longhaul_engine::store::Delivery;
use longhaul_engine::{
    Engine, EventLog, MessageBody, NewRun, Payload, RequestedBy, RunId, RunReader, Started, Stop,
    StoreError, Summary,
};
use longhaul_storage::SledStore;
use longhaul_workflows::backlog::FeatureId;
use longhaul_workflows::contracts::{LoadedBacklog, ProjectRef};
use longhaul_workflows::project::{ProjectInput, ProjectWorkflow, SyncRequest, signal};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::RwLock;

use crate::head::RunHead;
use crate::owner::Owner;
use crate::project;
use crate::signals;
use crate::status::{self, StatusDocument};
use crate::views;

use crate::batches::{OpenBatches, StartSettings};
use crate::refused::{Recorded, refusal};
use crate::request::{self, AnyRequest, Encoded, RequestError, Response, request};
use crate::served::{self, ServedProject};

/// The status of a project; `None` if the log does not know it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ProjectStatus {
    /// The run of the project.
    pub project: RunId,
    /// The current list, used if no process runs the project. Absent: the list that the project
    /// read last.
    #[serde(skip)]
    pub list: Option<LoadedBacklog>,
}

/// Starts a project, or makes its run read its list again.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Begin {
    /// The project: its id, and the top of its checkout.
    pub project: ProjectRef,
    /// Whether to claim the repository from another data directory.
    pub take_over: bool,
    /// The only features to start, with those that they depend on; empty: all.
    #[serde(default)]
    pub only: BTreeSet<FeatureId>,
}

/// Sends a signal to a run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SendSignal {
    /// The run.
    pub run: RunId,
    /// The name of the signal.
    pub name: String,
    /// Its payload, as the workflow of the run reads it.
    pub payload: Value,
    /// The requester, and the reason.
    pub request: RequestedBy,
}

/// Settles an unknown outcome of a parked run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Reconcile {
    /// The run.
    pub run: RunId,
    /// Whether the effect happened.
    pub landed: bool,
    /// Its output, if it happened.
    pub output: Option<Value>,
    /// The requester, and the reason.
    pub request: RequestedBy,
}

/// The runs that were sent a message.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Delivered {
    /// The runs, in the order of their ids.
    pub runs: Vec<Receiver>,
}

/// A run that was sent a message.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Receiver {
    /// The run.
    pub run: RunId,
    /// Whether the message stays unread because no process runs this run now.
    pub waits: bool,
    /// The checkout of its project, if that is known.
    pub root: Option<String>,
}

impl Delivered {
    /// Whether a message stays unread.
    pub fn waits(&self) -> bool {
        self.runs.iter().any(|receiver| receiver.waits)
    }
}

request!(ProjectStatus, "status" -> Option<StatusDocument>, |self, service| self.run(&service).await);

impl ProjectStatus {
    async fn run(self, service: &Service) -> Result<Option<StatusDocument>, RequestError> {
        let list = self.list.filter(|_| service.engine.is_none());
        match status::of_project(&*service.store, &self.project, &service.owner(), list).await {
            Err(StoreError::UnknownRun(_)) => Ok(None),
            known => {
                let mut document = known?;
                document.read_landing().await;
                Ok(Some(document))
            }
        }
    }
}

request!(Begin, "begin" -> (), command: Some("run"), |self, service| {
    project::check(Path::new(&self.project.root)).await?;
    service.own(&self.project, self.take_over).await?;
    let settings = StartSettings { only: self.only, ..StartSettings::default() };
    service.begin(self.project, &settings).await
});

request!(SendSignal, "signal" -> Delivered, command: Some("signal"), |self, service| self.run(&service).await);

impl SendSignal {
    async fn run(self, service: &Service) -> Result<Delivered, RequestError> {
        let Self { run, name, payload, request } = self;
        let summary = service.known(&run).await?;
        let payload = Payload::of(&payload);
        signals::check(&summary.workflow, &name, &payload).map_err(RequestError::refused)?;
        service.deliver_one(run, MessageBody::signal_by(name, payload, request)).await
    }
}

request!(Reconcile, "reconcile" -> Delivered, command: Some("reconcile"), |self, service| self.run(&service).await);

impl Reconcile {
    async fn run(self, service: &Service) -> Result<Delivered, RequestError> {
        let Self { run, landed, output, request } = self;
        let summary = service.known(&run).await?;
        if !matches!(summary.status, longhaul_engine::Status::Parked(_)) {
            let status = summary.status.name();
            return Err(RequestError::refused(format!(
                "run {run} is {status}: it waits for no word on an effect"
            )));
        }
        let head = RunHead::of(&*service.store, &run).await?;
        let is_settled = |body: &MessageBody| matches!(body, MessageBody::Reconcile { .. });
        if head.is_some_and(|head| head.has(is_settled)) {
            let reason = "it is reconciled already, and continues when its project runs next";
            return Err(RequestError::refused(reason));
        }
        let output = Payload::of(&output);
        service.deliver_one(run, MessageBody::Reconcile { landed, output, request }).await
    }
}

/// How long a shutdown waits for open requests.
const LAST_ANSWERS: Duration = Duration::from_secs(2);

/// A log and, if this process runs it, its engine.
pub struct Service {
    pub(crate) store: Arc<dyn RunReader>,
    /// The same log with operations that only an on-disk log has.
    pub(crate) log: Arc<SledStore>,
    pub(crate) engine: Option<Engine>,
    /// The projects that this process serves.
    pub(crate) engaged: Mutex<BTreeMap<RunId, ServedProject>>,
    /// The batches that this process runs.
    pub(crate) batches: OpenBatches,
    /// Shared with the engine: its locks serialise the git commands of one repository.
    pub(crate) git: GitHandlers,
    /// Lock held from the reset of a feature until its new run is in the log.
    pub(crate) rewinding: tokio::sync::Mutex<()>,
    /// Recorded refusals of requests from sessions.
    pub(crate) refused: Recorded,
    /// Read-locked by each open request.
    answering: RwLock<()>,
    /// Whether new requests are refused. Read it with `answering` held.
    is_closed: AtomicBool,
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
        let engaged = Mutex::default();
        let batches = OpenBatches::default();
        let rewinding = tokio::sync::Mutex::default();
        let answering = RwLock::default();
        let is_closed = AtomicBool::new(false);
        let refused = Recorded::default();
        let store = log.clone();
        Arc::new(Self {
            store,
            log,
            engine,
            engaged,
            batches,
            git,
            rewinding,
            refused,
            answering,
            is_closed,
        })
    }

    /// The ids of the projects that this process serves.
    pub fn engaged(&self) -> Vec<RunId> {
        self.lock_engaged().keys().cloned().collect()
    }

    /// Since when this process serves the project of a run.
    pub(crate) fn engaged_since(&self, run: &RunId) -> Option<DateTime<Utc>> {
        let engaged = self.lock_engaged();
        engaged.iter().find(|(root, _)| run.is_within(root.as_str())).map(|(_, at)| at.since)
    }

    pub(crate) fn lock_engaged(&self) -> MutexGuard<'_, BTreeMap<RunId, ServedProject>> {
        self.engaged.lock().unwrap_or_else(PoisonError::into_inner)
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

    /// Performs a request from the socket and passes the response on, unless the process is
    /// shutting down.
    pub(crate) async fn handle<T>(
        self: &Arc<Self>,
        request: Box<dyn AnyRequest>,
        hand_on: impl AsyncFnOnce(Encoded) -> T,
    ) -> T {
        let _answering = self.answering.read().await;
        let is_closed = self.is_closed.load(Ordering::SeqCst);
        let response =
            if is_closed { Response::Closing } else { request.perform(Arc::clone(self)).await };
        hand_on(response).await
    }

    /// Stops the engine, if there is one. New requests are refused; open ones complete within the
    /// grace period.
    pub async fn stop(&self) {
        let _ = tokio::time::timeout(LAST_ANSWERS, self.close()).await;
        if let Some(engine) = &self.engine {
            engine.stop().await;
        }
        served::disengage_all(self).await;
        self.release_work_trees().await;
    }

    /// Marks the work trees as unused, so that the next process can reuse them.
    pub(crate) async fn release_work_trees(&self) {
        if let Err(failure) = self.git.rest().await {
            tracing::warn!(%failure, "the next run makes its work trees again");
        }
    }

    /// Performs a request of this process, unless a session started the command.
    pub(crate) async fn perform_here<R: request::Request>(
        self: &Arc<Self>,
        request: R,
    ) -> Result<R::Response, RequestError> {
        let own = std::process::id().cast_signed();
        if let Some(refusal) = refusal(request.command(), Some(own), self.log.directory()) {
            return Err(refusal.error());
        }
        // Boxed: the futures of all callers hold it.
        let response = Box::pin(request.perform(Arc::clone(self))).await;
        if self.engine.is_none() {
            self.release_work_trees().await;
        }
        response
    }

    /// The stuck runs of the engine of this process.
    pub(crate) fn stuck_in_engine(&self) -> BTreeMap<RunId, Stop> {
        self.engine.as_ref().map(Engine::stuck).unwrap_or_default()
    }

    /// The summary of an existing run.
    pub(crate) async fn known(&self, run: &RunId) -> Result<Summary, StoreError> {
        self.store.summary(run).await?.ok_or_else(|| StoreError::UnknownRun(run.clone()))
    }

    /// The read view of the log.
    pub(crate) fn view(&self) -> views::View<'_> {
        views::View { store: &*self.store, owner: self.owner() }
    }

    /// What this process works on.
    pub(crate) fn owner(&self) -> Owner {
        Owner {
            stuck: self.stuck_in_engine(),
            queued: self.engine.as_ref().map(Engine::queued).unwrap_or_default(),
            is_running: self.engine.is_some(),
            served: self.engaged().into_iter().chain(self.batches.ids()).collect(),
        }
    }

    /// The engine; an error if this process does not run the log.
    pub(crate) fn running(&self) -> Result<&Engine, RequestError> {
        self.engine.as_ref().ok_or_else(|| RequestError::refused("this log is not being run"))
    }

    pub(crate) async fn begin(
        self: &Arc<Self>,
        project: ProjectRef,
        terms: &StartSettings,
    ) -> Result<(), RequestError> {
        let engine = self.running()?;
        let run = RunId::new(project.id.clone()).map_err(RequestError::refused)?;
        let known = status::known_root(&*self.store, &run).await?;
        let moved_from = known.filter(|root| *root != project.root);
        if let Some(root) = &moved_from
            && git::carries_id(Path::new(root), run.as_str()).await
        {
            return Err(RequestError::refused(is_copy(&project, root).await));
        }
        self.git.is_at(&project);
        if let Some(root) = &moved_from {
            tracing::info!(project = %run, from = %root, to = %project.root, "the project was moved");
            if let Err(failure) = self.git.follow_move(&project).await {
                return Err(RequestError::Failed { reason: failure.message });
            }
        }
        self.settle_forks(&project).await?;
        engine.adopt(run.as_str()).await?;
        let input = Payload::of(&ProjectInput { project: project.clone(), memory: None });
        let workflow = ProjectWorkflow::NAME.into();
        let new = NewRun { run: run.clone(), workflow, input, labels: terms.labels.clone() };
        let started = engine.start(new.clone()).await?;
        if started == Started::Over || (started == Started::Joined && self.is_ending(&run).await?) {
            self.begin_again(engine, &project, new).await?;
        }
        if started != Started::New && !terms.labels.is_empty() {
            engine.signal(&run, signal::LABEL, Payload::of(&terms.labels)).await?;
        }
        if !terms.overrides.is_empty() {
            engine.signal(&run, signal::OVERRIDE, Payload::of(&terms.overrides)).await?;
        }
        if moved_from.is_some() {
            engine.signal(&run, signal::MOVED, Payload::of(&project.root)).await?;
        }
        let id = uuid::Uuid::now_v7().to_string();
        let sync = match &terms.only {
            only if only.is_empty() => Payload::of(&id),
            only => Payload::of(&SyncRequest { id, only: only.clone() }),
        };
        engine.signal(&run, signal::SYNC, sync).await?;
        served::engage(self, run, PathBuf::from(project.root)).await;
        Ok(())
    }

    async fn deliver_one(&self, run: RunId, body: MessageBody) -> Result<Delivered, RequestError> {
        let waits = self.waits(&run);
        let is_delivered = self.deliver(&run, body).await?;
        let runs = if is_delivered { vec![self.receiver(run, waits).await?] } else { Vec::new() };
        Ok(Delivered { runs })
    }

    /// A run that was sent a message, with its project.
    pub(crate) async fn receiver(&self, run: RunId, waits: bool) -> Result<Receiver, StoreError> {
        let root = match RunId::new(run.root()) {
            Ok(project) => status::known_root(&*self.store, &project).await?,
            Err(_) => None,
        };
        Ok(Receiver { run, waits, root })
    }

    pub(crate) async fn deliver(&self, to: &RunId, body: MessageBody) -> Result<bool, StoreError> {
        if let Some(engine) = &self.engine {
            return engine.deliver(to, body).await;
        }
        let delivery = Delivery { to: to.clone(), at: Utc::now(), body };
        Ok(self.log.deliver(delivery).await?.is_some())
    }
}

/// Refuses an id that belongs to another existing directory.
pub async fn is_copy(project: &ProjectRef, root: &str) -> String {
    if git::share_repository(Path::new(&project.root), Path::new(root)).await {
        return format!(
            "{} and {root} are work trees of one repository, which is one project: run it in {root}, or make a clone",
            project.root
        );
    }
    format!(
        "{} carries the project id `{}`, which belongs to {root}: it seems to be a copy; give it an id of its own with \
         `git -C {} config --unset longhaul.id`",
        project.root, project.id, project.root
    )
}
