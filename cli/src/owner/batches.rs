//! Carrying batches on: what a batch has decided is done, and what becomes of it is told to the batch.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use longhaul_engine::{Engine, Message, MessageBody, NewRun, Payload, RunId, Share, Started, Status, StoreError};
use longhaul_workflows::backlog::FeatureId;
use longhaul_workflows::batch::{
    BatchInput, BatchView, BatchWorkflow, Entry, Now, Overrides, Plan, ProjectState, Submit,
};
use serde::{Deserialize, Serialize};

use crate::exit::Exit;
use crate::settled::{self, Watched, is_settled};
use crate::status;

use super::desk::{Answer, Desk};
use super::{AGENTS, engaged};

/// How often the projects of a batch are looked at.
const LOOK: Duration = Duration::from_millis(200);

/// On which terms a project is begun.
#[derive(Debug, Default)]
pub(super) struct Terms {
    pub(super) labels: BTreeMap<String, String>,
    pub(super) overrides: Overrides,
}

/// The batches that are carried on, each with how often it was submitted to this process.
#[derive(Debug, Default)]
pub(super) struct OpenBatches(Mutex<BTreeMap<RunId, u64>>);

/// Where a batch stands.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct BatchStanding {
    pub(crate) view: BatchView,
    pub(crate) states: BTreeMap<FeatureId, ProjectState>,
    /// Whether it is carried on: else nothing more happens unless somebody does something.
    pub(crate) is_open: bool,
}

impl OpenBatches {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<RunId, u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One more submission; whether it is the first.
    fn open(&self, batch: &RunId) -> bool {
        let mut open = self.lock();
        let count = open.entry(batch.clone()).or_default();
        *count += 1;
        *count == 1
    }

    pub(super) fn count(&self, batch: &RunId) -> u64 {
        self.lock().get(batch).copied().unwrap_or_default()
    }

    /// Closes it, unless it was submitted again meanwhile.
    fn close(&self, batch: &RunId, seen: u64) -> bool {
        let mut open = self.lock();
        let is_last = open.get(batch).is_none_or(|count| *count == seen);
        if is_last {
            open.remove(batch);
        }
        is_last
    }
}

impl Desk {
    /// Whether a batch is carried on by this process.
    pub(crate) fn has_open_batch(&self) -> bool {
        !self.batches.lock().is_empty()
    }

    /// Has a plan done.
    pub(super) async fn submit(self: &Arc<Self>, batch: &str, plan: Plan) -> Result<Answer, StoreError> {
        let Some(engine) = &self.engine else {
            return Ok(Answer::Refused { reason: "this log is not being run".into() });
        };
        let run = match BatchWorkflow::run_id(batch) {
            Ok(run) => run,
            Err(error) => return Ok(Answer::Refused { reason: error.to_string() }),
        };
        if let Err(reason) = plan.projects.iter().try_for_each(|entry| entry.overrides.check()) {
            return Ok(Answer::Refused { reason });
        }
        let before = standing(self, &run).await?;
        if let Some(before) = &before
            && let Err(error) = before.view.plan.with_additions(&plan)
        {
            return Ok(Answer::Refused { reason: format!("batch `{batch}`: {error}") });
        }
        engine.adopt(run.as_str()).await?;
        self.let_end(&run).await?;
        let input = Payload::of(&BatchInput::default());
        let new = NewRun { run: run.clone(), workflow: BatchWorkflow::NAME.into(), input, labels: BTreeMap::new() };
        if engine.start(new.clone()).await? == Started::Over {
            engine.restart(new).await?;
        }
        let submission = uuid::Uuid::now_v7().to_string();
        let submit = Submit { id: submission.clone(), plan };
        engine.signal(&run, Submit::SIGNAL, Payload::of(&submit)).await?;
        if self.batches.open(&run) {
            tokio::spawn(carry_on(Arc::clone(self), run));
        }
        Ok(Answer::Submitted { submission, known: before.map(|before| before.view.plan.projects.len()) })
    }

    /// Waits for a run that was told to end, so that it can be started again.
    async fn let_end(&self, run: &RunId) -> Result<(), StoreError> {
        let ends = |message: &Message| matches!(message.body, MessageBody::Cancel(_) | MessageBody::Terminate(_));
        for _ in 0..100 {
            if !self.store.mailbox(run).await?.iter().any(ends) {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok(())
    }

    pub(super) async fn batch(&self, batch: &str) -> Result<Answer, StoreError> {
        let Ok(run) = BatchWorkflow::run_id(batch) else {
            return Ok(Answer::Refused { reason: format!("`{batch}` cannot be the id of a batch") });
        };
        let is_open = self.batches.count(&run) > 0;
        match standing(self, &run).await? {
            Some(standing) => Ok(Answer::Batch { batch: Box::new(BatchStanding { is_open, ..standing }) }),
            None if is_open => {
                Ok(Answer::Batch { batch: Box::new(BatchStanding { is_open, ..BatchStanding::default() }) })
            }
            None => Ok(Answer::Unknown { run }),
        }
    }
}

/// Where a batch stands; `None` if it has never been submitted.
async fn standing(desk: &Desk, run: &RunId) -> Result<Option<BatchStanding>, StoreError> {
    let published = desk.store.published(run).await?;
    let Some(view) = published.get(BatchView::KEY).and_then(|view| view.read::<BatchView>().ok()) else {
        return Ok(None);
    };
    let state = |entry: &Entry| {
        let state = published.get(&ProjectState::key(&entry.name)).and_then(|state| state.read().ok());
        (entry.name.clone(), state.unwrap_or_default())
    };
    let states = view.plan.projects.iter().map(state).collect();
    Ok(Some(BatchStanding { view, states, is_open: false }))
}

/// The work of this process on a batch.
struct Driver {
    desk: Arc<Desk>,
    run: RunId,
    submission: String,
    watched: BTreeMap<FeatureId, Watched>,
    /// What the batch was told, and may not have published yet.
    told: BTreeMap<FeatureId, ProjectState>,
}

async fn carry_on(desk: Arc<Desk>, run: RunId) {
    let mut driver = Driver {
        desk: Arc::clone(&desk),
        run: run.clone(),
        submission: String::new(),
        watched: BTreeMap::new(),
        told: BTreeMap::new(),
    };
    let Some(engine) = desk.engine.clone() else { return };
    loop {
        let seen = desk.batches.count(&run);
        match driver.look(&engine).await {
            Ok(false) => {}
            Ok(true) => {
                if desk.batches.close(&run, seen) {
                    return;
                }
            }
            Err(error) => {
                tracing::warn!("cannot carry on with {run}: {error}");
                desk.batches.lock().remove(&run);
                return;
            }
        }
        tokio::time::sleep(LOOK).await;
    }
}

impl Driver {
    /// Does what is to be done now; whether nothing is left.
    async fn look(&mut self, engine: &Engine) -> Result<bool, StoreError> {
        let store = Arc::clone(&self.desk.store);
        // In this order: a batch that waits after its mailbox was seen empty has published what came of the last message.
        let has_mail = !store.mailbox(&self.run).await?.is_empty();
        let summary = store.summary(&self.run).await?.ok_or_else(|| StoreError::UnknownRun(self.run.clone()))?;
        let is_held = engine.stuck().contains_key(&self.run)
            || matches!(summary.status, Status::Paused(_))
            || summary.status.is_terminal();
        let Some(standing) = standing(&self.desk, &self.run).await? else { return Ok(is_held) };
        if standing.view.submitted != self.submission {
            self.follow(engine, &standing.view);
        }
        let mut is_working = false;
        for entry in &standing.view.plan.projects {
            let published = standing.states.get(&entry.name).cloned().unwrap_or_default();
            if let Some(now) = self.project(engine, entry, &published).await? {
                is_working |= now == ProjectState::Working;
                self.tell(engine, entry, &published, now).await?;
            }
        }
        let is_quiet = matches!(summary.status, Status::Waiting { .. }) && !has_mail;
        let published_working = standing.states.values().any(|state| *state == ProjectState::Working);
        Ok(!is_working && (is_held || (is_quiet && !published_working)))
    }

    /// Begins a project that is to be worked on, and sees where it stands; `None`: its turn has not come, or is over.
    async fn project(
        &mut self,
        engine: &Engine,
        entry: &Entry,
        published: &ProjectState,
    ) -> Result<Option<ProjectState>, StoreError> {
        if *published == ProjectState::Waiting {
            return Ok(None);
        }
        if !self.watched.contains_key(&entry.name) {
            if *published != ProjectState::Working {
                return Ok(None);
            }
            match self.begin(entry).await? {
                Ok(watched) => drop(self.watched.insert(entry.name.clone(), watched)),
                Err(reason) => return Ok(Some(ProjectState::Refused { reason })),
            }
        }
        let Some(watched) = self.watched.get_mut(&entry.name) else { return Ok(None) };
        let document = status::of_project(&*self.desk.store, &watched.id, &engine.stuck(), true).await?;
        if !is_settled(watched, &document) {
            return Ok(Some(ProjectState::Working));
        }
        let reason = document.vain_wait().map(|(_, cause)| cause.to_owned()).or(document.problem.clone());
        let now = state_of(settled::exit(&document), reason);
        if now == ProjectState::Passed && *published == now {
            // Nothing is left to do: neither is it looked at nor are its files watched any more.
            let id = watched.id.clone();
            self.watched.remove(&entry.name);
            engaged::disengage(&self.desk, &id).await;
            return Ok(None);
        }
        Ok(Some(now))
    }

    /// Takes a new submission in: projects are looked at again, and the limits are those of its plan.
    fn follow(&mut self, engine: &Engine, view: &BatchView) {
        self.submission.clone_from(&view.submitted);
        self.watched.clear();
        self.told.clear();
        for (label, most) in &view.plan.limits {
            engine.limit(AGENTS, label, *most as usize);
        }
        for entry in &view.plan.projects {
            let labels = entry.labels.iter().map(|(label, value)| format!("{label}={value}")).collect();
            engine.share(&entry.project.id, Share { priority: entry.priority, labels });
        }
    }

    async fn begin(&self, entry: &Entry) -> Result<Result<Watched, String>, StoreError> {
        let terms = Terms { labels: entry.labels.clone(), overrides: entry.overrides.clone() };
        if let Err(refused) = self.desk.own(&entry.project, false).await {
            return match refused {
                Answer::Refused { reason } | Answer::Failed { reason } => Ok(Err(reason)),
                _ => Ok(Err("it could not be begun".into())),
            };
        }
        Ok(match self.desk.begin(entry.project.clone(), &terms).await? {
            Answer::Begun => match RunId::new(entry.project.id.clone()) {
                Ok(run) => Ok(Watched::new(run)),
                Err(error) => Err(error.to_string()),
            },
            Answer::Refused { reason } => Err(reason),
            _ => Err("it could not be begun".into()),
        })
    }

    async fn tell(
        &mut self,
        engine: &Engine,
        entry: &Entry,
        published: &ProjectState,
        now: ProjectState,
    ) -> Result<(), StoreError> {
        if now == *published {
            self.told.remove(&entry.name);
            return Ok(());
        }
        if self.told.get(&entry.name) == Some(&now) {
            return Ok(());
        }
        let (submission, name) = (self.submission.clone(), entry.name.clone());
        let word = Now { submission, name: name.clone(), state: now.clone() };
        engine.signal(&self.run, Now::SIGNAL, Payload::of(&word)).await?;
        self.told.insert(name, now);
        Ok(())
    }
}

fn state_of(exit: Exit, problem: Option<String>) -> ProjectState {
    match exit {
        Exit::Ok => ProjectState::Passed,
        Exit::Finding => ProjectState::Blocked,
        Exit::Suspended => ProjectState::Suspended,
        _ => ProjectState::Refused { reason: problem.unwrap_or_else(|| "the log or the disk failed".into()) },
    }
}
