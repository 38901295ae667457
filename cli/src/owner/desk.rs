//! What can be asked of a log, and the answers: the same for the owner itself, for other commands through its socket, and
//! for a command that opened a log at rest.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use chrono::Utc;
use longhaul_activities::git::{self, GitHandlers};
use longhaul_engine::store::Delivery;
use longhaul_engine::{Engine, EventStore, MessageBody, NewRun, Payload, Request, RunId, Started, StoreError};
use longhaul_storage::SledStore;
use longhaul_workflows::batch::Plan;
use longhaul_workflows::contracts::ProjectRef;
use longhaul_workflows::project::{ProjectInput, ProjectWorkflow, signal};
use longhaul_workflows::signals;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::RwLock;

use crate::look;
use crate::pending::Pending;
use crate::status::{self, StatusDocument, StuckRun};

use super::again::{Again, Report};
use super::batches::{BatchStanding, OpenBatches, Terms};
use super::carry::{self, Carried, Errand};
use super::engaged::{self, Engaged};
use super::order::Order;
use super::refused::{Recorded, refusal};
use super::select::{Filter, Selected};

/// Something asked of a log.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
pub(crate) enum Ask {
    /// Where a project stands; with what is for people, or with what a watcher needs.
    Status { project: RunId, for_people: bool },
    /// Run a project.
    Begin { project: ProjectRef, take_over: bool },
    /// Tell something to a run, or to a project and what is below it.
    Steer { target: RunId, order: Order, request: Request, dry_run: bool },
    /// Find the runs that are not over, or that have the status which is asked for.
    Select { filters: Vec<Filter> },
    /// Have a batch done, or what is added to it; idempotent by its id.
    Submit { batch: String, plan: Plan },
    /// Where a batch stands.
    Batch { batch: String },
    /// Put a signal into a mailbox.
    Signal { run: RunId, name: String, payload: Value, request: Request },
    /// Take a run or a project back, or go on from where it stopped.
    Again { again: Again },
    /// Settle an unknown outcome.
    Reconcile { run: RunId, landed: bool, output: Option<Value>, request: Request },
    /// The runs that cannot go on.
    Stuck,
    /// Look at runs; nothing changes.
    Look { what: look::Question },
    /// Carry runs out or in, prune, check.
    Carry { what: Errand },
}

impl Ask {
    /// Whether it may be asked twice: nothing changes by it.
    pub(super) fn only_looks(&self) -> bool {
        matches!(self, Self::Status { .. } | Self::Select { .. } | Self::Batch { .. } | Self::Look { .. } | Self::Stuck)
    }
}

impl Ask {
    /// The verb, if it changes something, or has the process that runs the log write a file: nothing for an agent.
    pub(super) fn steers(&self) -> Option<&'static str> {
        Some(match self {
            Self::Status { .. }
            | Self::Select { .. }
            | Self::Batch { .. }
            | Self::Look { .. }
            | Self::Stuck
            | Self::Steer { dry_run: true, .. } => return None,
            Self::Carry { what } => return what.changes(),
            Self::Steer { order, .. } => order.verb(),
            Self::Begin { .. } => "run",
            Self::Submit { .. } => "batch",
            Self::Signal { .. } => "signal",
            Self::Again { .. } => "fork",
            Self::Reconcile { .. } => "reconcile",
        })
    }
}

/// The answer.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub(crate) enum Answer {
    Status {
        status: Box<StatusDocument>,
    },
    /// The project is run: it has a message to read its list in its mailbox.
    Begun,
    Looked {
        document: Box<look::Document>,
    },
    /// The runs that were told, and whether it waits in their mailboxes because nobody runs them now.
    Told {
        runs: Vec<RunId>,
        waits: bool,
    },
    Submitted {
        submission: String,
        /// How many of its projects were known before; `None`: the batch is new.
        known: Option<usize>,
    },
    Batch {
        batch: Box<BatchStanding>,
    },
    Selected {
        runs: Vec<Selected>,
    },
    /// The runs that cannot go on.
    Stuck {
        runs: Vec<StuckRun>,
    },
    /// An errand is done.
    Carried {
        what: Box<Carried>,
    },
    /// What came of taking back.
    Again {
        report: Report,
    },
    /// There is no such run.
    Unknown {
        run: RunId,
    },
    /// It is so already.
    SoAlready {
        reason: String,
    },
    /// A person has to do something else first.
    Held {
        reason: String,
    },
    /// It cannot be done, and why.
    Refused {
        reason: String,
    },
    /// The log or the disk failed.
    Failed {
        reason: String,
    },
    /// It was not taken up: the process is about to end.
    Leaving,
}

/// How long the end of a process waits for answers that others wait for.
const LAST_ANSWERS: Duration = Duration::from_secs(2);

/// A log and, if this process owns it for running, its engine.
pub(crate) struct Desk {
    pub(super) store: Arc<dyn EventStore>,
    /// The same log, for what only one on disk can do.
    pub(super) log: Arc<SledStore>,
    pub(super) engine: Option<Engine>,
    /// The projects that this process runs.
    pub(super) engaged: Mutex<BTreeMap<RunId, Engaged>>,
    /// The batches that this process carries on.
    pub(super) batches: OpenBatches,
    /// The hands that the engine has, too: their locks keep one repository's commands apart.
    pub(super) git: GitHandlers,
    /// Held while a feature is taken back and its new run is not in the log yet.
    pub(super) taking_back: tokio::sync::Mutex<()>,
    /// What sessions asked for and were refused, as far as it was recorded.
    pub(super) refused: Recorded,
    /// Held by everybody who is being answered.
    answering: RwLock<()>,
    /// Whether nothing more is taken up. To be looked at with `answering` held.
    is_closed: AtomicBool,
}

impl Desk {
    /// A log that nobody runs.
    pub(super) fn at_rest(log: Arc<SledStore>, git: GitHandlers) -> Arc<Self> {
        Self::of(log, None, git)
    }

    /// A log that this process runs.
    pub(super) fn with_engine(log: Arc<SledStore>, engine: Engine, git: GitHandlers) -> Arc<Self> {
        Self::of(log, Some(engine), git)
    }

    fn of(log: Arc<SledStore>, engine: Option<Engine>, git: GitHandlers) -> Arc<Self> {
        let (engaged, batches) = (Mutex::default(), OpenBatches::default());
        let (taking_back, answering) = (tokio::sync::Mutex::default(), RwLock::default());
        let is_closed = AtomicBool::new(false);
        let refused = Recorded::default();
        let store = log.clone();
        Arc::new(Self { store, log, engine, engaged, batches, git, taking_back, refused, answering, is_closed })
    }

    /// The ids of the projects that this process runs.
    pub(crate) fn engaged(&self) -> Vec<RunId> {
        self.lock_engaged().keys().cloned().collect()
    }

    pub(super) fn lock_engaged(&self) -> MutexGuard<'_, BTreeMap<RunId, Engaged>> {
        self.engaged.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes nothing more up: who asks now is to ask whoever has the log next. Waits until everybody else has an answer.
    pub(crate) async fn close(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
        drop(self.answering.write().await);
    }

    /// Takes questions up again.
    pub(crate) fn reopen(&self) {
        self.is_closed.store(false, Ordering::SeqCst);
    }

    /// Answers a question from elsewhere, and hands the answer on, unless nothing more is taken up.
    pub(super) async fn attend<T>(self: &Arc<Self>, ask: Ask, hand_on: impl AsyncFnOnce(Answer) -> T) -> T {
        let _answering = self.answering.read().await;
        let is_closed = self.is_closed.load(Ordering::SeqCst);
        hand_on(if is_closed { Answer::Leaving } else { self.answer(ask).await }).await
    }

    /// Stops the engine, if there is one. Nothing more is taken up; who is being answered gets the answer, if it comes soon.
    pub(crate) async fn stop(&self) {
        let _ = tokio::time::timeout(LAST_ANSWERS, self.close()).await;
        if let Some(engine) = &self.engine {
            engine.stop().await;
        }
        engaged::refresh_all(self).await;
        self.come_to_rest().await;
    }

    /// Nothing works in the trees any more: the next process can build upon them.
    pub(super) async fn come_to_rest(&self) {
        if let Err(failure) = self.git.rest().await {
            tracing::warn!(%failure, "the next run makes its work trees again");
        }
    }

    /// Answers the command that opened the log, unless a session runs it.
    pub(super) async fn answer_here(self: &Arc<Self>, ask: Ask) -> Answer {
        let own = std::process::id().cast_signed();
        if let Some(refusal) = refusal(&ask, Some(own), self.log.directory()) {
            return refusal.answer();
        }
        let answer = self.answer(ask).await;
        if self.engine.is_none() {
            self.come_to_rest().await;
        }
        answer
    }

    /// Answers.
    pub(crate) async fn answer(self: &Arc<Self>, ask: Ask) -> Answer {
        let answer = match ask {
            Ask::Status { project, for_people } => self.status(&project, for_people).await,
            Ask::Begin { project, take_over } => match self.own(&project, take_over).await {
                Ok(()) => self.begin(project, &Terms::default()).await,
                Err(refused) => Ok(refused),
            },
            Ask::Submit { batch, plan } => self.submit(&batch, plan).await,
            Ask::Batch { batch } => self.batch(&batch).await,
            Ask::Steer { target, order, request, dry_run } => self.steer(&target, &order, &request, dry_run).await,
            Ask::Select { filters } => self.select(&filters).await,
            Ask::Signal { run, name, payload, request } => self.signal(run, name, payload, request).await,
            Ask::Again { again } => self.again(again).await,
            Ask::Reconcile { run, landed, output, request } => self.reconcile(run, landed, output, request).await,
            Ask::Stuck => self.stuck().await.map(|runs| Answer::Stuck { runs }),
            Ask::Look { what } => self.look(what).await,
            Ask::Carry { what } => carry::answer(self, what).await,
        };
        answer.unwrap_or_else(|error| match error {
            StoreError::UnknownRun(run) => Answer::Unknown { run },
            error => Answer::Failed { reason: error.to_string() },
        })
    }

    async fn status(&self, project: &RunId, for_people: bool) -> Result<Answer, StoreError> {
        let stuck = self.engine.as_ref().map(Engine::stuck).unwrap_or_default();
        let mut status = status::of_project(&*self.store, project, &stuck, self.engine.is_some()).await?;
        if for_people {
            status::name_who_ended(&*self.store, &mut status).await;
        }
        Ok(Answer::Status { status: Box::new(status) })
    }

    async fn look(&self, what: look::Question) -> Result<Answer, StoreError> {
        let stuck = self.engine.as_ref().map(Engine::stuck).unwrap_or_default();
        let view = look::View { store: &*self.store, stuck: &stuck, is_running: self.engine.is_some() };
        let document = view.answer(what).await?;
        Ok(Answer::Looked { document: Box::new(document) })
    }

    pub(super) async fn begin(self: &Arc<Self>, project: ProjectRef, terms: &Terms) -> Result<Answer, StoreError> {
        let Some(engine) = &self.engine else {
            return Ok(Answer::Refused { reason: "this log is not being run".into() });
        };
        let run = match RunId::new(project.id.clone()) {
            Ok(run) => run,
            Err(error) => return Ok(Answer::Refused { reason: error.to_string() }),
        };
        let known = status::known_root(&*self.store, &run).await?;
        let moved_from = known.filter(|root| *root != project.root);
        if let Some(root) = &moved_from
            && git::carries_id(Path::new(root), run.as_str()).await
        {
            return Ok(Answer::Refused { reason: is_copy(&project, root).await });
        }
        self.git.is_at(&project);
        if let Some(root) = &moved_from {
            tracing::info!(project = %run, from = %root, to = %project.root, "the project was moved");
            if let Err(failure) = self.git.follow_move(&project).await {
                return Ok(Answer::Failed { reason: failure.message });
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
        let sync = uuid::Uuid::now_v7().to_string();
        engine.signal(&run, signal::SYNC, Payload::of(&sync)).await?;
        engaged::engage(self, run, PathBuf::from(project.root)).await;
        Ok(Answer::Begun)
    }

    async fn signal(&self, run: RunId, name: String, payload: Value, request: Request) -> Result<Answer, StoreError> {
        let summary = self.store.summary(&run).await?.ok_or_else(|| StoreError::UnknownRun(run.clone()))?;
        let payload = Payload::of(&payload);
        if let Err(reason) = signals::check(&summary.workflow, &name, &payload) {
            return Ok(Answer::Refused { reason });
        }
        let body = MessageBody::signal_by(name, payload, request);
        let waits = self.waits(&run);
        let told = self.deliver(&run, body).await?;
        Ok(Answer::Told { runs: told.then_some(run).into_iter().collect(), waits })
    }

    async fn reconcile(
        &self,
        run: RunId,
        landed: bool,
        output: Option<Value>,
        request: Request,
    ) -> Result<Answer, StoreError> {
        let summary = self.store.summary(&run).await?.ok_or_else(|| StoreError::UnknownRun(run.clone()))?;
        if !matches!(summary.status, longhaul_engine::Status::Parked(_)) {
            let reason = format!("run {run} is {}: it waits for no word on an effect", summary.status.name());
            return Ok(Answer::Refused { reason });
        }
        if let Some((landed, request)) = Pending::of(&*self.store, &run).await?.settled {
            let said = if landed { "landed" } else { "did not land" };
            let reason =
                format!("{} has said already that it {said}: that is taken up when it is run again", request.by);
            return Ok(Answer::Refused { reason });
        }
        let output = output.map(|output| Payload::of(&output));
        let waits = self.waits(&run);
        let told = self.deliver(&run, MessageBody::Reconcile { landed, output, request }).await?;
        Ok(Answer::Told { runs: told.then_some(run).into_iter().collect(), waits })
    }

    pub(super) async fn deliver(&self, to: &RunId, body: MessageBody) -> Result<bool, StoreError> {
        if let Some(engine) = &self.engine {
            return engine.deliver(to, body).await;
        }
        let delivery = Delivery { to: to.clone(), at: Utc::now(), body };
        Ok(self.store.deliver(delivery).await?.is_some())
    }
}

/// The same id belongs to another directory that still exists.
pub(crate) async fn is_copy(project: &ProjectRef, root: &str) -> String {
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
