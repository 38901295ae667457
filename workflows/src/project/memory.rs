//! What a project remembers from one message to the next, and across segments of its history.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use longhaul_engine::{Failure, RequestedBy, RunId, Stop};
use serde::{Deserialize, Serialize};

use crate::backlog::{Backlog, Feature, FeatureId, FeatureState};
use crate::batch::Overrides;
use crate::contracts::ProjectRef;
use crate::feature::{Edited, FeatureProgress, Turn};
use crate::finding::{Finding, Findings};
use crate::settings::Settings;

use super::admission::Admissions;
use super::list::Gone;
use super::order::Skipped;
use super::queue::MergeQueue;
use super::regression;
use super::rollback::Rollback;
use super::runs::Current;
use super::view::ProjectSummary;

/// Input of the project workflow: the project, and what it remembered when it went on as new.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProjectInput {
    /// The project.
    pub project: ProjectRef,
    /// `None`: it has never run.
    pub memory: Option<Remembered>,
}

/// What a project carries over into a new segment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Remembered {
    settings: Settings,
    pub(super) target: String,
    pub(super) list_file: String,
    pub(super) features: Vec<Feature>,
    pub(super) records: BTreeMap<FeatureId, Record>,
    /// Features that were in the list once.
    gone: BTreeMap<FeatureId, Gone>,
    current: BTreeMap<FeatureId, Current>,
    queue: MergeQueue,
    held: BTreeSet<RunId>,
    pub(super) waits_on_next: Option<String>,
    landed: Option<Vec<String>>,
    pub(super) synced: String,
    failed_syncs: u32,
    problem: Option<String>,
    pub(super) halted: Option<RequestedBy>,
    #[serde(default, skip_serializing_if = "Overrides::is_empty")]
    overrides: Overrides,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    labels: BTreeMap<String, String>,
    followed: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rollback: Option<Rollback>,
    #[serde(default)]
    admissions: Admissions,
    #[serde(default, skip_serializing_if = "Findings::is_empty")]
    pub(super) findings: Findings,
}

/// What is known of a feature that is not simply pending.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Record {
    pub(super) state: FeatureState,
    /// The number of its last run; also of those that its id had when it was another feature.
    pub(super) runs: u32,
    /// Sessions in all of them.
    pub(super) sessions: u32,
    /// The commit that passed.
    pub(super) commit: Option<String>,
    /// The files that its work changed.
    pub(super) files: Vec<String>,
    /// It is said to pass; its gates have not run on the target.
    pub(super) claimed: bool,
    /// It passed as claimed: nothing of it landed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) by_claim: bool,
    /// The number of its first run, if another feature had its id before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) anew: Option<u32>,
    /// An agent called its work done, and that has not landed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) called_done: bool,
    /// It passed, and then a feature that it depends on was taken back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) invalidated: Option<FeatureId>,
    /// What a person should know of its last run.
    #[serde(default, skip_serializing_if = "Findings::is_empty")]
    pub(super) findings: Findings,
}

/// What a run is told.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Outgoing {
    Cancel(RunId, RequestedBy),
    Edited(RunId, Box<Edited>),
}

/// The memory of a project, ready to decide.
pub(super) struct Memory {
    pub(super) project: ProjectRef,
    pub(super) settings: Settings,
    pub(super) target: String,
    pub(super) list_file: String,
    pub(super) backlog: Backlog,
    pub(super) records: BTreeMap<FeatureId, Record>,
    /// Features that were in the list once.
    pub(super) gone: BTreeMap<FeatureId, Gone>,
    /// The runs that have not ended, at most one for each feature.
    pub(super) current: BTreeMap<FeatureId, Current>,
    pub(super) queue: MergeQueue,
    /// Runs that do not go on by themselves, as far as is known: paused, parked or stuck.
    pub(super) held: BTreeSet<RunId>,
    pub(super) waits_on_next: Option<String>,
    /// Commits that are in the target only if all are that passed: its commit at the last sync,
    /// and those since. `None`: these are too many.
    pub(super) landed: Option<Vec<String>>,
    pub(super) synced: String,
    /// How often in a row the list could not be read for a reason that may pass.
    pub(super) failed_syncs: u32,
    pub(super) problem: Option<String>,
    pub(super) halted: Option<RequestedBy>,
    /// What a batch set.
    pub(super) overrides: Overrides,
    /// What a batch calls the runs that it has started.
    pub(super) labels: BTreeMap<String, String>,
    /// Whether the checkout was asked since the last change.
    pub(super) followed: bool,
    /// What is to be done as soon as nothing is under way.
    pub(super) rollback: Option<Rollback>,
    /// What other runs are to be told next.
    pub(super) outbox: Vec<Outgoing>,
    /// A signal that was not followed and is not published yet.
    pub(super) skipped: Option<Skipped>,
    /// Who may have a session.
    pub(super) admissions: Admissions,
    /// What a person should know of the project as a whole.
    pub(super) findings: Findings,
    /// Whether there are more of them than were published.
    pub(super) has_findings: bool,
    /// How long until an agent is to be probed that is out of order.
    pub(super) probe_in: Option<Duration>,
    /// Features whose state is not published yet.
    pub(super) changed: BTreeSet<FeatureId>,
    /// What was published last in this segment.
    pub(super) published: Option<ProjectSummary>,
}

impl Memory {
    pub(super) fn from_input(input: ProjectInput) -> Result<Self, Stop> {
        let remembered = input.memory.unwrap_or_else(Remembered::nothing);
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
            landed: remembered.landed,
            synced: remembered.synced,
            failed_syncs: remembered.failed_syncs,
            problem: remembered.problem,
            halted: remembered.halted,
            overrides: remembered.overrides,
            labels: remembered.labels,
            followed: remembered.followed,
            rollback: remembered.rollback,
            outbox: Vec::new(),
            skipped: None,
            admissions: remembered.admissions,
            findings: remembered.findings,
            has_findings: false,
            probe_in: None,
            changed: BTreeSet::new(),
            published: None,
        })
    }

    pub(super) fn into_input(self) -> ProjectInput {
        let features = self.backlog.iter().map(|(feature, _)| feature.clone()).collect();
        let memory = Remembered {
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
            landed: self.landed,
            synced: self.synced,
            failed_syncs: self.failed_syncs,
            problem: self.problem,
            halted: self.halted,
            overrides: self.overrides,
            labels: self.labels,
            followed: self.followed,
            rollback: self.rollback,
            admissions: self.admissions,
            findings: self.findings,
        };
        ProjectInput { project: self.project, memory: Some(memory) }
    }

    /// When the project acts without a message: it reads the list again, or has an agent probed.
    pub(super) fn wake_in(&self) -> Option<Duration> {
        self.retry_in().into_iter().chain(self.probe_in).min()
    }

    pub(super) fn len(&self) -> usize {
        self.backlog.counts().total()
    }

    /// Whether the list was read once: before that no feature can be worked on, and there is no
    /// target.
    pub(super) fn is_synced(&self) -> bool {
        !self.target.is_empty()
    }

    pub(super) fn is_claimed(&self, id: &FeatureId) -> bool {
        self.records.get(id).is_some_and(|record| record.claimed)
    }

    /// Whether the next run of a feature is the first one, and another feature had its id before.
    pub(super) fn is_anew(&self, id: &FeatureId) -> bool {
        self.records.get(id).is_some_and(|record| record.anew == Some(record.runs + 1))
    }

    pub(super) fn block(&mut self, id: &FeatureId, reason: String) {
        self.set(id, FeatureState::Blocked(reason));
    }

    /// Blocks a feature because a person wants that. Its run ends, and what has passed already is a
    /// claim when it is unblocked.
    pub(super) fn block_on_request(&mut self, id: &FeatureId, reason: String) {
        if self.backlog.state(id) == Some(&FeatureState::Passed) {
            self.record(id).claimed = true;
        }
        self.end_run(id, &format!("the feature was blocked: {reason}"));
        self.block(id, reason);
    }

    pub(super) fn unblock(&mut self, id: &FeatureId) {
        if matches!(self.backlog.state(id), Some(FeatureState::Blocked(_))) {
            self.put_back(id);
        }
    }

    /// Starts no further feature, and ends the runs of those that are worked on.
    pub(super) fn halt(&mut self, request: RequestedBy) {
        let why = if request.why.is_empty() { "the project was halted" } else { &request.why };
        let at_work: Vec<FeatureId> = self.current.keys().cloned().collect();
        for id in &at_work {
            self.end_run(id, why);
        }
        self.halted = Some(request);
    }

    pub(super) fn put_back(&mut self, id: &FeatureId) {
        self.set(id, FeatureState::Pending);
        let _ = self.backlog.mark_started_before(id);
    }

    /// Takes over what the outcome of a run says of its way.
    pub(super) fn note_progress(&mut self, id: &FeatureId, progress: &FeatureProgress) {
        let record = self.record(id);
        record.sessions += progress.sessions;
        record.findings.clone_from(&progress.findings);
        let outside =
            progress.findings.iter().filter(|finding| matches!(finding, Finding::Outside { .. }));
        outside.cloned().for_each(|finding| self.note_finding(finding));
    }

    pub(super) fn note_finding(&mut self, finding: Finding) {
        self.has_findings |= self.findings.add(finding);
    }

    /// The next run that merges, and its turn.
    pub(super) fn next_turn(&mut self) -> Option<(RunId, Turn)> {
        let held = self.held_features();
        let waiting = self.queue.waiting().filter(|ready| !self.may_merge(ready));
        let kept_back: BTreeSet<FeatureId> = waiting.map(|ready| ready.feature.clone()).collect();
        let (ready, tree) =
            self.queue.next(|id| held.contains(id), |id| !kept_back.contains(id))?;
        let run = self.run_of(&ready.feature)?;
        Some((run, Turn { regression: regression::checks(self, &ready), tree }))
    }

    /// The features whose runs do not go on by themselves.
    pub(super) fn held_features(&self) -> BTreeSet<FeatureId> {
        self.held.iter().filter_map(|run| self.feature_of(run)).collect()
    }

    pub(super) fn is_idle(&self) -> bool {
        let has_runs = !self.current.is_empty() || self.failed_syncs > 0;
        !has_runs && (self.halted.is_some() || self.backlog.is_settled())
    }

    /// What is known of a feature, be it in the list or not.
    pub(super) fn record(&mut self, id: &FeatureId) -> &mut Record {
        self.changed.insert(id.clone());
        match self.gone.get_mut(id) {
            Some(gone) => &mut gone.record,
            None => self.records.entry(id.clone()).or_default(),
        }
    }

    pub(super) fn set(&mut self, id: &FeatureId, state: FeatureState) {
        if self.gone.contains_key(id) || restore(&mut self.backlog, id, &state).is_ok() {
            self.record(id).state = state;
        }
    }
}

/// Without a check nothing could ever show that a feature is done.
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
        FeatureState::Blocked(reason) => backlog.mark_blocked(id, reason.clone()),
    }
}

pub(super) fn refused(error: impl std::fmt::Display) -> Stop {
    Stop::Failed(Failure::terminal(error.to_string()))
}

impl Remembered {
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
            landed: Some(Vec::new()),
            synced: String::new(),
            failed_syncs: 0,
            problem: None,
            halted: None,
            overrides: Overrides::default(),
            labels: BTreeMap::new(),
            followed: false,
            rollback: None,
            admissions: Admissions::default(),
            findings: Findings::default(),
        }
    }
}
