//! The states of runs: one meaning for every output.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use longhaul_engine::{EventKind, RunId, Status, StoreError, Summary};
use longhaul_workflows::batch::{Entry, EntryState};
use longhaul_workflows::contracts::{SessionEnding, SessionReport};
use longhaul_workflows::feature::FeatureOutcome;
use longhaul_workflows::narrative;
use longhaul_workflows::project::BacklogView;
use longhaul_workflows::projection::{ProjectState, ProjectView, State};

use super::{View, project_and_feature};
use crate::batches::BatchStanding;
use crate::head;
use crate::owner::Owner;
use crate::questions;
use crate::run_kind::RunKind;
use crate::status;

/// The state of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RunState {
    /// The state.
    pub(crate) state: State,
    /// Why it makes no progress, or did not pass.
    pub(crate) reason: Option<String>,
    /// When it continues by itself.
    pub(crate) until: Option<DateTime<Utc>>,
}

/// The published states of projects, read once for many runs.
#[derive(Default)]
pub(crate) struct Projects(BTreeMap<String, Published>);

#[derive(Default)]
struct Published {
    view: ProjectView,
    passed: BTreeSet<RunId>,
}

impl RunState {
    fn of(state: State, reason: Option<String>) -> Self {
        Self { state, reason, until: None }
    }
}

impl View<'_> {
    /// The state of a run.
    pub(crate) async fn standing(
        &self,
        run: &RunId,
        summary: &Summary,
        projects: &mut Projects,
    ) -> Result<RunState, StoreError> {
        if summary.status.is_terminal() {
            return self.ended(run, summary, projects).await;
        }
        let mut standing = self.open(run, summary, projects).await?;
        if standing.state == State::Waiting && !self.owner.runs(run) && standing.until.is_none() {
            standing.reason.get_or_insert_with(|| Owner::NOT_RUN.to_owned());
        }
        Ok(standing)
    }

    async fn open(
        &self,
        run: &RunId,
        summary: &Summary,
        projects: &mut Projects,
    ) -> Result<RunState, StoreError> {
        match RunKind::of(summary) {
            RunKind::Project => {
                let document = status::brief(self.store, run, &self.owner).await?;
                Ok(RunState::of(document.status.into(), document.reason))
            }
            RunKind::Batch if !matches!(summary.status, Status::Paused(_)) => {
                self.of_batch(run, summary).await
            }
            RunKind::Feature => self.of_open_feature(run, summary, projects).await,
            _ => self.of_other(run, summary).await,
        }
    }

    /// The state of a closed run. The outcome of a run never changes, even if its feature is reset
    /// later.
    async fn ended(
        &self,
        run: &RunId,
        summary: &Summary,
        projects: &mut Projects,
    ) -> Result<RunState, StoreError> {
        match &summary.status {
            Status::Failed(reason) => Ok(RunState::of(State::Failed, Some(reason.clone()))),
            Status::Cancelled => {
                let entry = head::ended_by(self.store, run, summary).await;
                let request = entry.map(|entry| entry.action.request());
                let by = request.map(|request| narrative::by(&request).trim_start().to_owned());
                Ok(RunState::of(State::Cancelled, by.filter(|by| !by.is_empty())))
            }
            // Most runs have passed, and one read of the project returns all of them.
            _ if RunKind::of(summary) == RunKind::Feature
                && let (Some(project), _) = project_and_feature(run, summary)
                && self.published(project, projects).await?.passed.contains(run) =>
            {
                Ok(RunState::of(State::Passed, None))
            }
            _ => {
                let last = self.store.read(run, summary.origin).await?.pop();
                Ok(completed(&RunKind::of(summary), last.map(|event| event.kind)))
            }
        }
    }

    async fn published<'a>(
        &self,
        project: String,
        projects: &'a mut Projects,
    ) -> Result<&'a Published, StoreError> {
        if !projects.0.contains_key(&project) {
            let view = match RunId::new(project.clone()) {
                Ok(id) => {
                    ProjectView::of(&self.store.published_except(&id, BacklogView::KEY).await?)
                }
                Err(_) => ProjectView::default(),
            };
            let passed = view.passed_runs().cloned().collect();
            projects.0.insert(project.clone(), Published { view, passed });
        }
        Ok(projects.0.entry(project).or_default())
    }

    /// The state of a feature with an open run, as in the status of its project.
    async fn of_open_feature(
        &self,
        run: &RunId,
        summary: &Summary,
        projects: &mut Projects,
    ) -> Result<RunState, StoreError> {
        let project = project_and_feature(run, summary).0.unwrap_or_default();
        let view = &self.published(project, projects).await?.view;
        let line = status::open_line(self.store, view, run, &self.owner).await?;
        Ok(RunState { state: line.status, reason: line.reason, until: until(summary) })
    }

    async fn of_other(&self, run: &RunId, summary: &Summary) -> Result<RunState, StoreError> {
        let status = &summary.status;
        let is_session = RunKind::of(summary) == RunKind::Session;
        let (state, reason) = match head::state_of(status, !is_session) {
            State::Running => match questions::question_of(self.store, run, status).await? {
                Some(question) => (State::Waiting, Some(question.reason())),
                None => self.at_work(run),
            },
            state => (state, held_by(status)),
        };
        Ok(RunState { state, reason, until: until(summary) })
    }

    /// A run that works, if a process runs it and has a place for it.
    fn at_work(&self, run: &RunId) -> (State, Option<String>) {
        match self.owner.place_of(run) {
            Some(place) => (State::Waiting, Some(place.to_owned())),
            None if self.owner.runs(run) => (State::Running, None),
            None => (State::Waiting, None),
        }
    }

    /// The state of a project of a batch now: it may have been finished since without the batch.
    pub(super) async fn entry_state(
        &self,
        batch: &RunId,
        entry: &Entry,
        published: EntryState,
    ) -> Result<EntryState, StoreError> {
        let is_settled = matches!(published, EntryState::Waiting | EntryState::Passed);
        let Some(project) = RunId::new(entry.project.id.clone()).ok().filter(|_| !is_settled)
        else {
            return Ok(published);
        };
        if self.owner.runs(batch) || self.store.summary(&project).await?.is_none() {
            return Ok(published);
        }
        let mut document = status::brief(self.store, &project, &self.owner).await?;
        document.read_landing().await;
        Ok(if document.status == ProjectState::Done { EntryState::Passed } else { published })
    }

    /// The state of a batch, from the states of its projects.
    async fn of_batch(&self, run: &RunId, summary: &Summary) -> Result<RunState, StoreError> {
        let batch = BatchStanding::of(&self.store.published(run).await?).unwrap_or_default();
        let mut states: Vec<EntryState> = Vec::new();
        for entry in &batch.view.plan.projects {
            states.push(self.entry_state(run, entry, batch.published(&entry.name)).await?);
        }
        let held = |state: &&EntryState| state.needs_person();
        let count = states.iter().filter(held).count();
        let is_idle = !states.contains(&EntryState::Working);
        let state = match () {
            () if states.iter().all(|state| *state == EntryState::Passed) => ProjectState::Done,
            () if is_idle && count > 0 => ProjectState::NeedsAttention,
            () if self.owner.runs(run) => ProjectState::Running,
            () => ProjectState::Waiting,
        };
        let need = if count == 1 { "needs" } else { "need" };
        let reason =
            (count > 0).then(|| format!("{count} of {} projects {need} a person", states.len()));
        Ok(RunState { state: state.into(), reason, until: until(summary) })
    }
}

/// Why a run makes no progress, by its recorded status.
fn held_by(status: &Status) -> Option<String> {
    match status {
        Status::Paused(request) => Some(narrative::by(request).trim_start().to_owned()),
        Status::Parked(effect) => Some(effect.to_string()),
        Status::Waiting { machine, .. } => machine.clone(),
        _ => None,
    }
}

fn until(summary: &Summary) -> Option<DateTime<Utc>> {
    match summary.status {
        Status::Waiting { until, .. } => until,
        _ => None,
    }
}

/// The state of a completed run, from its last event. An outcome that is missing or unreadable is a
/// failure: only a recorded one proves that a run passed.
fn completed(kind: &RunKind, last: Option<EventKind>) -> RunState {
    let Some(EventKind::RunCompleted { output }) = last else {
        return RunState::of(State::Failed, Some("the log has no outcome of it".into()));
    };
    let outcome = match kind {
        RunKind::Feature => output.read().map(of_feature_outcome),
        RunKind::Session => output.read().map(of_session_report),
        _ => Ok(RunState::of(State::Passed, None)),
    };
    outcome.unwrap_or_else(|error| {
        RunState::of(State::Failed, Some(format!("its outcome cannot be read: {error}")))
    })
}

fn of_feature_outcome(outcome: FeatureOutcome) -> RunState {
    match outcome {
        FeatureOutcome::Passed { .. } => RunState::of(State::Passed, None),
        FeatureOutcome::Blocked { block, .. } => {
            RunState::of(State::Blocked, Some(block.to_string()))
        }
    }
}

fn of_session_report(report: SessionReport) -> RunState {
    match report.ending {
        SessionEnding::Failed { reason, .. } | SessionEnding::NotStarted { reason } => {
            RunState::of(State::Failed, Some(reason))
        }
        // Only the gates of its feature decide whether that is so.
        SessionEnding::ClaimsDone => {
            RunState::of(State::Passed, Some("the agent claims that the work is done".into()))
        }
        SessionEnding::ContextFull => {
            RunState::of(State::Passed, Some("the context is full".into()))
        }
        SessionEnding::Landed { .. } => RunState::of(State::Passed, None),
    }
}
