//! Drives batches: starts the projects that a batch has decided on, and reports their states to it.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use longhaul_engine::{
    Engine, Message, MessageBody, NewRun, Payload, RunId, Share, Started, Status, StoreError,
};
use longhaul_workflows::backlog::FeatureId;
use longhaul_workflows::batch::{
    BatchInput, BatchView, BatchWorkflow, Entry, EntryState, Plan, StateReport, Submit,
};
use longhaul_workflows::projection::ProjectState;
use serde::{Deserialize, Serialize};

use crate::settled::{self, Verdict, Watched, is_settled};
use crate::status::{self, StatusDocument};

use crate::begin::StartSettings;
use crate::perform::request;
use crate::pools::AGENTS;
use crate::project;
use crate::request::RequestError;
use crate::served;
use crate::service::Service;

/// How long a terminated run may take to end.
const ENDING: Duration = Duration::from_secs(2);
/// The shortest time between two looks at the projects of a batch, and the time between them while
/// one is about to settle: it settles by being quiet for a time, which no event tells.
const LOOK: Duration = Duration::from_millis(200);
/// The longest time between two looks: a project that waits for its machine settles by time, too.
const IDLE: Duration = Duration::from_secs(5);

/// The status of a batch in this process.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct BatchStanding {
    /// Its plan and the submission that it comes from.
    pub view: BatchView,
    /// The state of each project.
    pub states: BTreeMap<FeatureId, EntryState>,
    /// Whether it makes progress without a person.
    pub is_open: bool,
    /// The states of its active projects; of a batch that makes no progress, or on request, of all
    /// projects.
    pub projects: BTreeMap<FeatureId, StatusDocument>,
}

/// Submits a batch or additions to it; idempotent by its id.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SubmitBatch {
    /// Its id.
    pub batch: String,
    /// Its projects and limits.
    pub plan: Plan,
    /// The absolute path of the file that describes it, if there is one.
    pub file: Option<String>,
}

impl SubmitBatch {
    /// The label of a batch with the path of its file.
    pub const FILE: &'static str = "file";
}

/// A batch that was submitted.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Submitted {
    /// The id of this submission.
    pub submission: String,
    /// How many of its projects were known before; `None` if the batch is new.
    pub already_known: Option<usize>,
}

/// The status of a batch.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct BatchStatus {
    /// Its id.
    pub batch: String,
    /// Whether to include the projects that it does not work on.
    #[serde(default)]
    pub all: bool,
}

impl BatchStanding {
    /// From the published values of a batch; `None` if it was never submitted.
    pub(crate) fn of(published: &BTreeMap<String, Payload>) -> Option<Self> {
        let view: BatchView = published.get(BatchView::KEY)?.read().ok()?;
        let state = |entry: &Entry| {
            let state = published.get(&EntryState::key(&entry.name))?.read().ok()?;
            Some((entry.name.clone(), state))
        };
        let states = view.plan.projects.iter().filter_map(state).collect();
        Some(Self { view, states, ..Self::default() })
    }

    /// The last published state of a project.
    pub(crate) fn published(&self, name: &FeatureId) -> EntryState {
        self.states.get(name).cloned().unwrap_or_default()
    }

    /// The state of a project.
    pub fn state(&self, name: &FeatureId) -> ProjectState {
        let status = self.projects.get(name).map(|document| document.status);
        match self.states.get(name) {
            None | Some(EntryState::Waiting) => ProjectState::Waiting,
            Some(EntryState::Working) => status.unwrap_or(ProjectState::Running),
            Some(EntryState::Passed) => ProjectState::Done,
            Some(EntryState::Refused { .. }) => ProjectState::NeedsAttention,
            // Finished work that waits, or a project with a person's request, has its own state.
            Some(EntryState::Blocked | EntryState::Suspended) => match status {
                Some(
                    status @ (ProjectState::Cancelled | ProjectState::Paused | ProjectState::Done),
                ) => status,
                _ => ProjectState::NeedsAttention,
            },
        }
    }
}

request!(SubmitBatch, "submit_batch" -> Submitted, command: Some("batch"),
    |self, service| service.submit(self).await);

request!(BatchStatus, "batch" -> BatchStanding, |self, service| self.run(&service).await);

impl BatchStatus {
    async fn run(self, service: &Service) -> Result<BatchStanding, RequestError> {
        let batch = &self.batch;
        let run = BatchWorkflow::run_id(batch)
            .map_err(|_| RequestError::refused(format!("`{batch}` cannot be the id of a batch")))?;
        let is_open = service.batches.count(&run) > 0;
        let mut batch = match standing(service, &run).await? {
            Some(standing) => BatchStanding { is_open, ..standing },
            None if is_open => BatchStanding { is_open, ..BatchStanding::default() },
            None => return Err(RequestError::UnknownRun { run }),
        };
        for entry in &batch.view.plan.projects {
            let is_working = batch.states.get(&entry.name) == Some(&EntryState::Working);
            if self.all || !is_open || is_working {
                batch.projects.insert(entry.name.clone(), service.status_of(entry).await?);
            }
        }
        Ok(batch)
    }
}

impl Service {
    /// Whether this process runs a batch.
    pub fn has_open_batch(&self) -> bool {
        !self.batches.lock().is_empty()
    }

    /// The projects that a batch has begun and that have not passed.
    pub(crate) async fn begun_projects(&self, batch: &RunId) -> Result<Vec<RunId>, StoreError> {
        let Some(BatchStanding { view, states, .. }) = standing(self, batch).await? else {
            return Ok(Vec::new());
        };
        let is_begun = |entry: &&Entry| {
            let state = states.get(&entry.name).unwrap_or(&EntryState::Waiting);
            !matches!(state, EntryState::Waiting | EntryState::Passed)
        };
        let begun = view.plan.projects.iter().filter(is_begun);
        Ok(begun.filter_map(|entry| RunId::new(entry.project.id.clone()).ok()).collect())
    }

    /// The state of a project of a batch, from the log, or from its files if it has not started.
    async fn status_of(&self, entry: &Entry) -> Result<StatusDocument, RequestError> {
        let project = RunId::new(entry.project.id.clone()).map_err(RequestError::refused)?;
        match status::of_project(&*self.store, &project, &self.owner(), None).await {
            Ok(document) if !document.root.is_empty() => return Ok(document),
            Ok(_) | Err(StoreError::UnknownRun(_)) => {}
            Err(error) => return Err(error.into()),
        }
        let root = &entry.project.root;
        let loaded = longhaul_activities::project::load(Path::new(root)).await;
        Ok(status::of_files(&project, root, loaded.ok()))
    }

    /// Submits a plan.
    async fn submit(self: &Arc<Self>, submit: SubmitBatch) -> Result<Submitted, RequestError> {
        let SubmitBatch { batch, plan, file } = submit;
        let engine = self.running()?;
        let run = BatchWorkflow::run_id(&batch).map_err(RequestError::refused)?;
        plan.projects
            .iter()
            .try_for_each(|entry| entry.overrides.check())
            .map_err(RequestError::refused)?;
        for entry in &plan.projects {
            let wrong = |error| RequestError::refused(format!("project `{}`: {error}", entry.name));
            project::check(Path::new(&entry.project.root)).await.map_err(wrong)?;
        }
        let before = standing(self, &run).await?;
        if let Some(before) = &before
            && let Err(error) = before.view.plan.with_additions(&plan)
        {
            return Err(RequestError::refused(format!("batch `{batch}`: {error}")));
        }
        engine.adopt(run.as_str()).await?;
        self.wait_until_ended(engine, &run).await?;
        let input = Payload::of(&BatchInput::default());
        let new = NewRun {
            run: run.clone(),
            workflow: BatchWorkflow::NAME.into(),
            input,
            labels: file.map(|file| (SubmitBatch::FILE.to_owned(), file)).into_iter().collect(),
        };
        if engine.start(new.clone()).await? == Started::Over {
            engine.restart(new).await?;
        }
        let submission = uuid::Uuid::now_v7().to_string();
        let submit = Submit { id: submission.clone(), plan };
        engine.signal(&run, Submit::SIGNAL, Payload::of(&submit)).await?;
        if self.batches.open(&run) {
            tokio::spawn(drive(Arc::clone(self), run));
        }
        let already_known = before.map(|before| before.view.plan.projects.len());
        Ok(Submitted { submission, already_known })
    }

    /// Waits until a terminated run has ended, so that it can be started again.
    async fn wait_until_ended(&self, engine: &Engine, run: &RunId) -> Result<(), StoreError> {
        let ends = |message: &Message| {
            matches!(message.body, MessageBody::Cancel(_) | MessageBody::Terminate(_))
        };
        let mut changes = engine.changes();
        let ended = async {
            while self.store.mailbox(run).await?.iter().any(ends) {
                let _ = changes.recv().await;
            }
            Ok(())
        };
        tokio::time::timeout(ENDING, ended).await.unwrap_or(Ok(()))
    }
}

/// The status of a batch; `None` if it was never submitted.
async fn standing(service: &Service, run: &RunId) -> Result<Option<BatchStanding>, StoreError> {
    Ok(BatchStanding::of(&service.store.published(run).await?))
}

/// Runs a batch in this process.
struct Driver {
    service: Arc<Service>,
    run: RunId,
    submission: String,
    watched: BTreeMap<FeatureId, Watched>,
    /// Messages sent to the batch that it may not have published yet.
    reported: BTreeMap<FeatureId, EntryState>,
}

async fn drive(service: Arc<Service>, run: RunId) {
    let mut driver = Driver {
        service: Arc::clone(&service),
        run: run.clone(),
        submission: String::new(),
        watched: BTreeMap::new(),
        reported: BTreeMap::new(),
    };
    let Some(engine) = service.engine.clone() else { return };
    loop {
        let mut changes = engine.changes();
        let seen = service.batches.count(&run);
        match driver.step(&engine).await {
            Ok(false) => {}
            Ok(true) => {
                if service.batches.close(&run, seen) {
                    return;
                }
            }
            Err(error) => {
                tracing::warn!("cannot carry on with {run}: {error}");
                service.batches.lock().remove(&run);
                return;
            }
        }
        let is_timed = driver.watched.values().any(Watched::is_timed);
        tokio::time::sleep(LOOK).await;
        if !is_timed {
            let changed = changes.recv();
            let _ = tokio::time::timeout(IDLE, changed).await;
        }
    }
}

impl Driver {
    /// Performs the decisions that are due; returns whether the batch is complete.
    async fn step(&mut self, engine: &Engine) -> Result<bool, StoreError> {
        let store = Arc::clone(&self.service.store);
        // Order matters: a batch that waits after its mailbox was empty has published the effect of
        // its last message.
        let service = Arc::clone(&self.service);
        let _steering = service.batches.steering.lock().await;
        let mail = store.mailbox(&self.run).await?;
        let stops = |message: &Message| {
            matches!(
                message.body,
                MessageBody::Pause(_) | MessageBody::Cancel(_) | MessageBody::Terminate(_)
            )
        };
        let summary = store
            .summary(&self.run)
            .await?
            .ok_or_else(|| StoreError::UnknownRun(self.run.clone()))?;
        let is_held = engine.stuck().contains_key(&self.run)
            || matches!(summary.status, Status::Paused(_))
            || summary.status.is_terminal()
            || mail.iter().any(stops);
        let Some(standing) = standing(&self.service, &self.run).await? else { return Ok(is_held) };
        if standing.view.submitted != self.submission {
            self.follow(engine, &standing.view);
        }
        let mut is_working = false;
        for entry in &standing.view.plan.projects {
            let published = standing.published(&entry.name);
            if let Some(now) = self.project(entry, &published, is_held).await? {
                is_working |= now == EntryState::Working;
                self.report(engine, entry, &published, now).await?;
            }
        }
        let is_quiet = matches!(summary.status, Status::Waiting { .. }) && mail.is_empty();
        let published_working = standing.states.values().any(|state| *state == EntryState::Working);
        Ok(!is_working && (is_held || (is_quiet && !published_working)))
    }

    /// Starts a project that is due and reads its state; `None` if it is not due yet, or is done.
    async fn project(
        &mut self,
        entry: &Entry,
        published: &EntryState,
        is_held: bool,
    ) -> Result<Option<EntryState>, StoreError> {
        if *published == EntryState::Waiting {
            return Ok(None);
        }
        if !self.watched.contains_key(&entry.name) {
            if *published != EntryState::Working || is_held {
                return Ok(None);
            }
            match self.begin(entry).await {
                Ok(watched) => drop(self.watched.insert(entry.name.clone(), watched)),
                Err(error) => return Ok(Some(EntryState::Refused { reason: error.to_string() })),
            }
        }
        let Some(watched) = self.watched.get_mut(&entry.name) else { return Ok(None) };
        let document =
            status::of_project(&*self.service.store, &watched.id, &self.service.owner(), None)
                .await?;
        if !is_settled(watched, &document) {
            return Ok(Some(EntryState::Working));
        }
        let reason =
            document.limited_wait().map(|wait| wait.cause.to_owned()).or(document.problem.clone());
        let now = state_of(settled::verdict(&document), reason);
        if now == EntryState::Passed && *published == now {
            // Nothing is left to do, so stop polling it and watching its files.
            let id = watched.id.clone();
            self.watched.remove(&entry.name);
            served::stop_serving(&self.service, &id).await;
            return Ok(None);
        }
        Ok(Some(now))
    }

    /// Applies a new submission: polls its projects again, with the limits of its plan.
    fn follow(&mut self, engine: &Engine, view: &BatchView) {
        self.submission.clone_from(&view.submitted);
        self.watched.clear();
        self.reported.clear();
        for (label, most) in &view.plan.limits {
            engine.limit(AGENTS, label, *most as usize);
        }
        for entry in &view.plan.projects {
            let labels =
                entry.labels.iter().map(|(label, value)| format!("{label}={value}")).collect();
            engine.share(&entry.project.id, Share { priority: entry.priority, labels });
        }
    }

    async fn begin(&self, entry: &Entry) -> Result<Watched, RequestError> {
        let terms = StartSettings {
            labels: entry.labels.clone(),
            overrides: entry.overrides.clone(),
            ..StartSettings::default()
        };
        self.service.own(&entry.project, false).await?;
        self.service.begin(entry.project.clone(), &terms).await?;
        let project = RunId::new(entry.project.id.clone()).map_err(RequestError::refused)?;
        Ok(Watched::new(project))
    }

    async fn report(
        &mut self,
        engine: &Engine,
        entry: &Entry,
        published: &EntryState,
        now: EntryState,
    ) -> Result<(), StoreError> {
        if now == *published {
            self.reported.remove(&entry.name);
            return Ok(());
        }
        if self.reported.get(&entry.name) == Some(&now) {
            return Ok(());
        }
        let submission = self.submission.clone();
        let name = entry.name.clone();
        let report = StateReport { submission, name: name.clone(), state: now.clone() };
        engine.signal(&self.run, StateReport::SIGNAL, Payload::of(&report)).await?;
        self.reported.insert(name, now);
        Ok(())
    }
}

fn state_of(verdict: Verdict, problem: Option<String>) -> EntryState {
    match verdict {
        Verdict::Passed => EntryState::Passed,
        Verdict::Blocked => EntryState::Blocked,
        Verdict::Suspended => EntryState::Suspended,
        Verdict::Misconfigured | Verdict::Failed => EntryState::Refused {
            reason: problem.unwrap_or_else(|| "the log or the disk failed".into()),
        },
    }
}
