//! What can be asked of a log, and the answers: the same for the owner itself, for other commands through its socket, and
//! for a command that opened a log at rest.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chrono::Utc;
use longhaul_activities::git::GitHandlers;
use longhaul_engine::store::Delivery;
use longhaul_engine::{Engine, EventStore, MessageBody, NewRun, Payload, Request, RunId, StoreError};
use longhaul_workflows::contracts::ProjectRef;
use longhaul_workflows::project::{ProjectInput, ProjectWorkflow, signal};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::status::{self, StatusDocument};

use super::again::{Again, Report};
use super::engaged;

/// Something asked of a log.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
pub(crate) enum Ask {
    /// Where a project stands.
    Status { project: RunId },
    /// Run a project: the answer is the id of the sync to wait for.
    Begin { project: ProjectRef },
    /// Pause, resume or cancel a run, or a project and all that is below it.
    Steer { target: RunId, order: Order, request: Request },
    /// Put a signal into a mailbox.
    Signal { run: RunId, name: String, payload: Value },
    /// Take a run or a project back, or go on from where it stopped.
    Again { again: Again },
    /// Settle an unknown outcome.
    Reconcile { run: RunId, landed: bool, output: Option<Value>, request: Request },
}

/// What to do with runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Order {
    Pause,
    Resume,
    Cancel,
}

/// The answer.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub(crate) enum Answer {
    Status {
        status: Box<StatusDocument>,
    },
    Begun {
        sync: String,
    },
    /// The runs that were told.
    Told {
        runs: Vec<RunId>,
    },
    /// What came of taking back.
    Again {
        report: Report,
    },
    /// There is no such run.
    Unknown {
        run: RunId,
    },
    /// It cannot be done, and why.
    Refused {
        reason: String,
    },
    /// The log or the disk failed.
    Failed {
        reason: String,
    },
}

/// A log and, if this process owns it for running, its engine.
pub(crate) struct Desk {
    pub(super) store: Arc<dyn EventStore>,
    pub(super) engine: Option<Engine>,
    /// The hands that the engine has, too: their locks keep one repository's commands apart.
    pub(super) git: GitHandlers,
    /// The projects that this process runs, and where they are.
    pub(super) engaged: Mutex<BTreeMap<RunId, PathBuf>>,
    /// Held by everybody who is being answered.
    pub(super) answering: tokio::sync::RwLock<()>,
}

impl Desk {
    /// A log that nobody runs.
    pub(super) fn at_rest(store: Arc<dyn EventStore>, git: GitHandlers) -> Arc<Self> {
        Arc::new(Self {
            store,
            engine: None,
            git,
            engaged: Mutex::default(),
            answering: tokio::sync::RwLock::default(),
        })
    }

    /// A log that this process runs.
    pub(super) fn with_engine(store: Arc<dyn EventStore>, engine: Engine, git: GitHandlers) -> Arc<Self> {
        Arc::new(Self {
            store,
            engine: Some(engine),
            git,
            engaged: Mutex::default(),
            answering: tokio::sync::RwLock::default(),
        })
    }

    /// The ids of the projects that this process runs.
    pub(crate) fn engaged(&self) -> Vec<RunId> {
        self.lock_engaged().keys().cloned().collect()
    }

    pub(super) fn lock_engaged(&self) -> MutexGuard<'_, BTreeMap<RunId, PathBuf>> {
        self.engaged.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until everybody who asked has an answer: what a project comes to rest by may be what somebody waits for.
    pub(crate) async fn all_answered(&self) {
        drop(self.answering.write().await);
    }

    /// Stops the engine, if there is one.
    pub(crate) async fn stop(&self) {
        if let Some(engine) = &self.engine {
            engine.stop().await;
        }
        engaged::refresh_all(self).await;
    }

    /// Answers.
    pub(crate) async fn answer(self: &Arc<Self>, ask: Ask) -> Answer {
        let answer = match ask {
            Ask::Status { project } => self.status(&project).await,
            Ask::Begin { project } => self.begin(project).await,
            Ask::Steer { target, order, request } => self.steer(target, order, request).await,
            Ask::Signal { run, name, payload } => self.signal(run, name, &payload).await,
            Ask::Again { again } => self.again(again).await,
            Ask::Reconcile { run, landed, output, request } => self.reconcile(run, landed, output, request).await,
        };
        answer.unwrap_or_else(|error| match error {
            StoreError::UnknownRun(run) => Answer::Unknown { run },
            error => Answer::Failed { reason: error.to_string() },
        })
    }

    async fn status(&self, project: &RunId) -> Result<Answer, StoreError> {
        let stuck = self.engine.as_ref().map(Engine::stuck).unwrap_or_default();
        let status = status::of_project(&*self.store, project, &stuck, self.engine.is_some()).await?;
        Ok(Answer::Status { status: Box::new(status) })
    }

    async fn begin(self: &Arc<Self>, project: ProjectRef) -> Result<Answer, StoreError> {
        let Some(engine) = &self.engine else {
            return Ok(Answer::Refused { reason: "this log is not being run".into() });
        };
        let run = match RunId::new(project.id.clone()) {
            Ok(run) => run,
            Err(error) => return Ok(Answer::Refused { reason: error.to_string() }),
        };
        if let Some(reason) = self.is_elsewhere(&run, &project).await? {
            return Ok(Answer::Refused { reason });
        }
        engine.adopt(run.as_str()).await?;
        let input = Payload::of(&ProjectInput { project: project.clone(), memory: None });
        let workflow = ProjectWorkflow::NAME.into();
        engine.start(NewRun { run: run.clone(), workflow, input, labels: BTreeMap::new() }).await?;
        let sync = uuid::Uuid::now_v7().to_string();
        engine.signal(&run, signal::SYNC, Payload::of(&sync)).await?;
        engaged::engage(self, run, PathBuf::from(project.root)).await;
        Ok(Answer::Begun { sync })
    }

    /// Whether the same id belongs to another directory that still exists: a copied checkout.
    async fn is_elsewhere(&self, run: &RunId, project: &ProjectRef) -> Result<Option<String>, StoreError> {
        let Some(root) = status::known_root(&*self.store, run).await? else { return Ok(None) };
        let is_copy = root != project.root && std::path::Path::new(&root).join(".git").exists();
        Ok(is_copy.then(|| {
            format!(
                "{} carries the project id `{run}`, which belongs to {root}: it seems to be a copy; give it an id of its \
                 own with `git -C {} config --unset longhaul.id`",
                project.root, project.root
            )
        }))
    }

    pub(super) async fn steer(&self, target: RunId, order: Order, request: Request) -> Result<Answer, StoreError> {
        let summary = self.store.summary(&target).await?.ok_or_else(|| StoreError::UnknownRun(target.clone()))?;
        let is_project = summary.workflow == ProjectWorkflow::NAME;
        let mut runs = Vec::new();
        if is_project && order != Order::Pause {
            let (name, payload) = match order {
                Order::Cancel => (signal::HALT, Payload::of(&request)),
                _ => (signal::SYNC, Payload::of(&uuid::Uuid::now_v7().to_string())),
            };
            self.deliver(&target, MessageBody::Signal { name: name.into(), payload, from: None }).await?;
        }
        for (run, summary) in self.store.runs(target.as_str()).await? {
            let below = run.as_str()[target.as_str().len()..].starts_with('/');
            let is_meant = run == target || (is_project && below);
            // A cancelled project stays, and can be run again; its features' runs end.
            let survives = order == Order::Cancel && run == target && is_project;
            if !is_meant || summary.status.is_terminal() || survives {
                continue;
            }
            let body = match order {
                Order::Pause => MessageBody::Pause(request.clone()),
                Order::Resume => MessageBody::Resume(request.clone()),
                Order::Cancel => MessageBody::Cancel(request.clone()),
            };
            if self.deliver(&run, body).await? {
                runs.push(run);
            }
        }
        Ok(Answer::Told { runs })
    }

    async fn signal(&self, run: RunId, name: String, payload: &Value) -> Result<Answer, StoreError> {
        let body = MessageBody::Signal { name, payload: Payload::of(payload), from: None };
        let told = self.deliver(&run, body).await?;
        Ok(Answer::Told { runs: told.then_some(run).into_iter().collect() })
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
        let output = output.map(|output| Payload::of(&output));
        let told = self.deliver(&run, MessageBody::Reconcile { landed, output, request }).await?;
        Ok(Answer::Told { runs: told.then_some(run).into_iter().collect() })
    }

    pub(super) async fn deliver(&self, to: &RunId, body: MessageBody) -> Result<bool, StoreError> {
        if let Some(engine) = &self.engine {
            return engine.deliver(to, body).await;
        }
        let delivery = Delivery { to: to.clone(), at: Utc::now(), body };
        Ok(self.store.deliver(delivery).await?.is_some())
    }
}
