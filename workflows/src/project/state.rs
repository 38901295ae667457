//! The state of a project, and its snapshot for continue-as-new.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use longhaul_engine::{Failure, RequestedBy, RunId, Stop};
use serde::{Deserialize, Serialize};

use crate::backlog::{Backlog, Block, BlockCause, Feature, FeatureId, FeatureState};
use crate::batch::Overrides;
use crate::contracts::ProjectRef;
use crate::feature::FeatureProgress;
use crate::finding::{Finding, Findings};
use crate::settings::Settings;

use super::admission_state::AdmissionState;
use super::marks::DueMarks;
use super::queue::MergeQueue;
use super::record::{ActiveRun, PendingSend, Record, RemovedFeature};
use super::view::{ProjectSummary, Rollback};
use crate::finding::Skipped;

/// Input of the project workflow: the project, and its state across a continue-as-new.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProjectInput {
    /// The project.
    pub project: ProjectRef,
    /// `None`: the first run.
    pub memory: Option<Snapshot>,
}

/// The state that continues into a new segment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    settings: Settings,
    pub(super) target: String,
    pub(super) list_file: String,
    pub(super) features: Vec<Feature>,
    pub(super) records: BTreeMap<FeatureId, Record>,
    /// Features removed from the list.
    pub(super) gone: BTreeMap<FeatureId, RemovedFeature>,
    current: BTreeMap<FeatureId, ActiveRun>,
    queue: MergeQueue,
    held: BTreeSet<RunId>,
    pub(super) waits_on_next: Option<String>,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    waiting: BTreeSet<FeatureId>,
    landed: Option<Vec<String>>,
    pub(super) synced: String,
    failed_syncs: u32,
    problem: Option<String>,
    pub(super) halted: Option<RequestedBy>,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    only: BTreeSet<FeatureId>,
    #[serde(default, skip_serializing_if = "Overrides::is_empty")]
    overrides: Overrides,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    labels: BTreeMap<String, String>,
    followed: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rollback: Option<Rollback>,
    #[serde(default, skip_serializing_if = "DueMarks::is_empty")]
    marks: DueMarks,
    #[serde(default)]
    admission: AdmissionState,
    #[serde(default, skip_serializing_if = "Findings::is_empty")]
    pub(super) findings: Findings,
}

/// The state of a project while it runs.
pub(super) struct ProjectRun {
    pub(super) project: ProjectRef,
    pub(super) settings: Settings,
    pub(super) target: String,
    pub(super) list_file: String,
    pub(super) backlog: Backlog,
    pub(super) records: BTreeMap<FeatureId, Record>,
    /// Features removed from the list.
    pub(super) gone: BTreeMap<FeatureId, RemovedFeature>,
    /// The active runs, at most one for each feature.
    pub(super) current: BTreeMap<FeatureId, ActiveRun>,
    pub(super) queue: MergeQueue,
    /// The known held runs: paused, parked or stuck.
    pub(super) held: BTreeSet<RunId>,
    pub(super) waits_on_next: Option<String>,
    /// The features whose work waits on `longhaul/next`.
    pub(super) waiting: BTreeSet<FeatureId>,
    /// Commits that are all in the target if all passes are valid: its commit at the last sync, and
    /// those since. `None`: too many.
    pub(super) landed: Option<Vec<String>>,
    pub(super) synced: String,
    /// The number of consecutive temporary failures to read the list.
    pub(super) failed_syncs: u32,
    pub(super) problem: Option<String>,
    /// The only features to start, with those that they depend on; empty: all.
    pub(super) only: BTreeSet<FeatureId>,
    pub(super) halted: Option<RequestedBy>,
    /// The overrides of a batch.
    pub(super) overrides: Overrides,
    /// The labels that a batch gives to new runs.
    pub(super) labels: BTreeMap<String, String>,
    /// Whether the checkout was queried since the last change.
    pub(super) followed: bool,
    /// The rollback to perform as soon as no feature is in progress.
    pub(super) rollback: Option<Rollback>,
    /// The marks in the list that are due.
    pub(super) marks: DueMarks,
    /// Messages to send next.
    pub(super) outbox: Vec<PendingSend>,
    /// An ignored signal that is not yet published.
    pub(super) skipped: Option<Skipped>,
    /// The admission of sessions.
    pub(super) admission: AdmissionState,
    /// Findings about the project as a whole.
    pub(super) findings: Findings,
    /// Whether there are unpublished findings.
    pub(super) has_findings: bool,
    /// The time until the next probe of an agent.
    pub(super) probe_in: Option<Duration>,
    /// Features with unpublished states.
    pub(super) changed: BTreeSet<FeatureId>,
    /// The last published values of this segment.
    pub(super) published: Option<ProjectSummary>,
}

impl ProjectRun {
    pub(super) fn from_input(input: ProjectInput) -> Result<Self, Stop> {
        let remembered = input.memory.unwrap_or_else(Snapshot::nothing);
        let mut backlog = Backlog::new(remembered.features).map_err(refused)?;
        for (feature, record) in &remembered.records {
            restore(&mut backlog, feature, &record.state).map_err(refused)?;
        }
        Ok(Self {
            project: input.project,
            settings: remembered.settings,
            target: remembered.target,
            list_file: remembered.list_file,
            backlog,
            records: remembered.records,
            gone: remembered.gone,
            current: remembered.current,
            queue: remembered.queue,
            held: remembered.held,
            waits_on_next: remembered.waits_on_next,
            waiting: remembered.waiting,
            landed: remembered.landed,
            synced: remembered.synced,
            failed_syncs: remembered.failed_syncs,
            problem: remembered.problem,
            halted: remembered.halted,
            only: remembered.only,
            overrides: remembered.overrides,
            labels: remembered.labels,
            followed: remembered.followed,
            rollback: remembered.rollback,
            marks: remembered.marks,
            outbox: Vec::new(),
            skipped: None,
            admission: remembered.admission,
            findings: remembered.findings,
            has_findings: false,
            probe_in: None,
            changed: BTreeSet::new(),
            published: None,
        })
    }

    pub(super) fn into_input(self) -> ProjectInput {
        let features = self.backlog.iter().map(|(feature, _)| feature.clone()).collect();
        let memory = Snapshot {
            settings: self.settings,
            target: self.target,
            list_file: self.list_file,
            features,
            records: self.records,
            gone: self.gone,
            current: self.current,
            queue: self.queue,
            held: self.held,
            waits_on_next: self.waits_on_next,
            waiting: self.waiting,
            landed: self.landed,
            synced: self.synced,
            failed_syncs: self.failed_syncs,
            problem: self.problem,
            halted: self.halted,
            only: self.only,
            overrides: self.overrides,
            labels: self.labels,
            followed: self.followed,
            rollback: self.rollback,
            marks: self.marks,
            admission: self.admission,
            findings: self.findings,
        };
        ProjectInput { project: self.project, memory: Some(memory) }
    }

    /// The next time at which the project acts without a message: it reads the list again, or
    /// probes an agent.
    pub(super) fn wake_in(&self) -> Option<Duration> {
        self.retry_in().into_iter().chain(self.probe_in).min()
    }

    pub(super) fn len(&self) -> usize {
        self.backlog.counts().total()
    }

    /// Whether the list was read once: before that there are no features and no target.
    pub(super) fn is_synced(&self) -> bool {
        !self.target.is_empty()
    }

    pub(super) fn is_claimed(&self, id: &FeatureId) -> bool {
        self.records.get(id).is_some_and(|record| record.claimed)
    }

    /// Whether the next run of a feature is its first, and an earlier feature had its id.
    pub(super) fn replaces_earlier(&self, id: &FeatureId) -> bool {
        self.records.get(id).is_some_and(|record| record.anew == Some(record.runs + 1))
    }

    pub(super) fn block(&mut self, id: &FeatureId, cause: BlockCause, reason: impl Into<String>) {
        self.set(id, FeatureState::Blocked(Block { cause, reason: reason.into() }));
    }

    /// Blocks a feature on request. Its run ends, and an earlier pass is a claim once it is
    /// unblocked.
    pub(super) fn block_on_request(&mut self, id: &FeatureId, reason: String) {
        if self.backlog.state(id) == Some(&FeatureState::Passed) {
            self.record(id).claimed = true;
        }
        self.end_run(id, &format!("the feature was blocked: {reason}"));
        self.block(id, BlockCause::Request, reason);
    }

    pub(super) fn unblock(&mut self, id: &FeatureId) {
        if matches!(self.backlog.state(id), Some(FeatureState::Blocked(_))) {
            self.return_to_pending(id);
        }
    }

    /// Halts: starts no further feature, and ends the active runs.
    pub(super) fn halt(&mut self, request: RequestedBy) {
        let why = if request.why.is_empty() { "the project was halted" } else { &request.why };
        let at_work: Vec<FeatureId> = self.current.keys().cloned().collect();
        for id in &at_work {
            self.end_run(id, why);
        }
        self.halted = Some(request);
    }

    pub(super) fn return_to_pending(&mut self, id: &FeatureId) {
        self.set(id, FeatureState::Pending);
        let _ = self.backlog.mark_started_before(id);
    }

    /// Applies the statistics in the outcome of a run.
    pub(super) fn note_progress(&mut self, id: &FeatureId, progress: &FeatureProgress) {
        let record = self.record(id);
        record.sessions += progress.sessions;
        record.used = progress.used();
        record.findings.clone_from(&progress.findings);
        let outside =
            progress.findings.iter().filter(|finding| matches!(finding, Finding::Outside { .. }));
        outside.cloned().for_each(|finding| self.note_finding(finding));
    }

    pub(super) fn note_finding(&mut self, finding: Finding) {
        self.has_findings |= self.findings.add(finding);
    }

    /// The features with held runs.
    pub(super) fn held_features(&self) -> BTreeSet<FeatureId> {
        // A held session holds its feature.
        self.held.iter().filter_map(|run| self.feature_with(run)).collect()
    }

    pub(super) fn is_idle(&self) -> bool {
        let has_runs = !self.current.is_empty() || self.failed_syncs > 0;
        let is_over = || self.over_budget().is_some();
        !has_runs && (self.halted.is_some() || self.backlog.is_settled() || is_over())
    }

    /// The state of a feature, listed or not.
    pub(super) fn record(&mut self, id: &FeatureId) -> &mut Record {
        self.changed.insert(id.clone());
        match self.gone.get_mut(id) {
            Some(gone) => &mut gone.record,
            None => self.records.entry(id.clone()).or_default(),
        }
    }

    pub(super) fn set(&mut self, id: &FeatureId, state: FeatureState) {
        if self.gone.contains_key(id) || restore(&mut self.backlog, id, &state).is_ok() {
            let record = self.record(id);
            record.over_limit = None;
            record.unready = false;
            let has_passed = state == FeatureState::Passed;
            record.state = state;
            if !has_passed {
                self.marks.forget(id);
            }
        }
    }
}

/// Without a check no feature could be proved done.
pub const NO_CHECK: &str = "it has no acceptance check, so nothing can show that it is done: give it `checks` in the \
     feature list, or the project a [[gate]] in longhaul.toml";

fn restore(
    backlog: &mut Backlog,
    id: &FeatureId,
    state: &FeatureState,
) -> Result<(), crate::backlog::BacklogError> {
    match state {
        FeatureState::Pending => backlog.mark_pending(id),
        FeatureState::InProgress => backlog.mark_in_progress(id),
        FeatureState::Passed => backlog.mark_passed(id),
        FeatureState::Blocked(block) => backlog.mark_blocked(id, block.clone()),
    }
}

pub(super) fn refused(error: impl std::fmt::Display) -> Stop {
    Stop::Failed(Failure::terminal(error.to_string()))
}

impl Snapshot {
    pub(super) fn nothing() -> Self {
        Self {
            settings: Settings::default(),
            target: String::new(),
            list_file: String::new(),
            features: Vec::new(),
            records: BTreeMap::new(),
            gone: BTreeMap::new(),
            current: BTreeMap::new(),
            queue: MergeQueue::default(),
            held: BTreeSet::new(),
            waits_on_next: None,
            waiting: BTreeSet::new(),
            landed: Some(Vec::new()),
            synced: String::new(),
            failed_syncs: 0,
            problem: None,
            only: BTreeSet::new(),
            halted: None,
            overrides: Overrides::default(),
            labels: BTreeMap::new(),
            followed: false,
            rollback: None,
            marks: DueMarks::default(),
            admission: AdmissionState::default(),
            findings: Findings::default(),
        }
    }
}
