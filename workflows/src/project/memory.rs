//! What a project remembers from one message to the next, and across segments of its history.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use longhaul_engine::{Failure, Request, RunId, Stop};
use serde::{Deserialize, Serialize};

use crate::backlog::{Backlog, Feature, FeatureId, FeatureState, FeatureStatus};
use crate::batch::Overrides;
use crate::contracts::{LoadedBacklog, ProjectRef};
use crate::feature::{Ready, Turn};
use crate::settings::Settings;

use super::admission::Admissions;
use super::regression;
use super::rollback::Rollback;
use super::view::ProjectView;

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
    target: String,
    list_file: String,
    features: Vec<Feature>,
    records: BTreeMap<FeatureId, Record>,
    lane: Option<FeatureId>,
    waiting: VecDeque<Ready>,
    waits_on_next: Option<String>,
    synced: String,
    problem: Option<String>,
    halted: Option<Request>,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    stopping: BTreeSet<FeatureId>,
    #[serde(default, skip_serializing_if = "Overrides::is_empty")]
    overrides: Overrides,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    labels: BTreeMap<String, String>,
    followed: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rollback: Option<Rollback>,
    #[serde(default)]
    admissions: Admissions,
}

/// What is known of a feature that is not simply pending.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Record {
    pub(super) state: FeatureState,
    /// How many runs it has had.
    pub(super) runs: u32,
    /// Sessions in all of them.
    pub(super) sessions: u32,
    /// The commit that passed.
    pub(super) commit: Option<String>,
    /// The files that its work changed.
    pub(super) files: Vec<String>,
    /// Somebody says that it passes; the gates have not been asked.
    pub(super) claimed: bool,
    /// An agent called its work done, and that did not pass its gates or did not merge.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) judged: bool,
    /// It passed, and then a feature that it depends on was taken back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) invalidated: Option<FeatureId>,
}

/// The memory of a project, ready to decide.
pub(super) struct Memory {
    pub(super) project: ProjectRef,
    pub(super) settings: Settings,
    pub(super) target: String,
    pub(super) list_file: String,
    pub(super) backlog: Backlog,
    pub(super) records: BTreeMap<FeatureId, Record>,
    lane: Option<FeatureId>,
    waiting: VecDeque<Ready>,
    pub(super) waits_on_next: Option<String>,
    pub(super) synced: String,
    pub(super) problem: Option<String>,
    pub(super) halted: Option<Request>,
    /// Features that were worked on when the project was halted: their runs end, however soon the project goes on.
    pub(super) stopping: BTreeSet<FeatureId>,
    /// What a batch set.
    pub(super) overrides: Overrides,
    /// What a batch calls the runs that it has started.
    pub(super) labels: BTreeMap<String, String>,
    /// Whether the checkout was asked since the last change.
    pub(super) followed: bool,
    /// What is to be done as soon as nothing is under way.
    pub(super) rollback: Option<Rollback>,
    /// Who may have a session.
    pub(super) admissions: Admissions,
    /// How long until an agent is to be probed that is out of order.
    pub(super) probe_in: Option<Duration>,
    /// Features whose state is not published yet.
    pub(super) changed: BTreeSet<FeatureId>,
    /// What was published last in this segment.
    pub(super) published: Option<ProjectView>,
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
            lane: remembered.lane,
            waiting: remembered.waiting,
            waits_on_next: remembered.waits_on_next,
            synced: remembered.synced,
            problem: remembered.problem,
            halted: remembered.halted,
            stopping: remembered.stopping,
            overrides: remembered.overrides,
            labels: remembered.labels,
            followed: remembered.followed,
            rollback: remembered.rollback,
            admissions: remembered.admissions,
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
            lane: self.lane,
            waiting: self.waiting,
            waits_on_next: self.waits_on_next,
            synced: self.synced,
            problem: self.problem,
            halted: self.halted,
            stopping: self.stopping,
            overrides: self.overrides,
            labels: self.labels,
            followed: self.followed,
            rollback: self.rollback,
            admissions: self.admissions,
        };
        ProjectInput { project: self.project, memory: Some(memory) }
    }

    pub(super) fn len(&self) -> usize {
        self.backlog.counts().total()
    }

    /// Takes a list over as it is now; says what is wrong with it.
    pub(super) fn take_backlog(&mut self, loaded: LoadedBacklog) -> Result<(), String> {
        let is_first = self.synced.is_empty();
        let settings = self.overrides.apply(loaded.settings)?;
        let changes = self.backlog.update(loaded.features).map_err(|error| error.to_string())?;
        self.settings = settings;
        self.list_file = loaded.list_file;
        if is_first || self.settings.project.target.is_some() {
            self.target = loaded.target;
        }
        for feature in changes.added {
            self.take_claim(&feature);
        }
        for (feature, fields) in changes.edited {
            // What was asked for has changed: an answer to the old question is only a claim.
            if fields.iter().any(|field| !matches!(*field, "priority" | "depends_on")) {
                self.ask_again(&feature);
            }
        }
        for (feature, _) in changes.removed {
            self.records.remove(&feature);
            self.changed.insert(feature);
        }
        Ok(())
    }

    /// What the list says of a new feature: a claim at most.
    fn take_claim(&mut self, id: &FeatureId) {
        let Some(feature) = self.backlog.feature(id) else {
            return;
        };
        let claimed = feature.passes || feature.status == FeatureStatus::Completed;
        let blocked = feature.status == FeatureStatus::Blocked;
        if claimed {
            self.record(id).claimed = true;
        } else if blocked {
            self.block(id, "the list says so; `longhaul feature unblock` to try it".into());
        }
    }

    fn ask_again(&mut self, id: &FeatureId) {
        match self.backlog.state(id) {
            Some(FeatureState::Passed) => {
                self.record(id).claimed = true;
                self.set(id, FeatureState::Pending);
            }
            Some(FeatureState::Blocked(_)) => self.set(id, FeatureState::Pending),
            _ => {}
        }
    }

    /// The next feature to start a run for, if the limits allow one.
    pub(super) fn next_to_start(&mut self) -> Option<FeatureId> {
        if !self.has_room() || self.halted.is_some() || self.rollback.is_some() {
            return None;
        }
        loop {
            let next = self.next_apart()?.clone();
            let has_checks = self.backlog.feature(&next).is_some_and(|feature| !feature.checks.is_empty());
            if has_checks || !self.settings.gates.is_empty() {
                return Some(next);
            }
            self.block(&next, NO_CHECK.into());
        }
    }

    /// Marks a feature as begun; the id of its new run.
    pub(super) fn begin(&mut self, id: &FeatureId) -> Result<RunId, Stop> {
        self.stopping.remove(id);
        self.admissions.begin(id);
        self.record(id).runs += 1;
        self.set(id, FeatureState::InProgress);
        self.run_of(id).ok_or_else(|| refused("its run has no valid id"))
    }

    pub(super) fn run_of(&self, id: &FeatureId) -> Option<RunId> {
        let runs = self.records.get(id).map(|record| record.runs).filter(|runs| *runs > 0)?;
        RunId::new(format!("{}/{id}/{runs}", self.project.id)).ok()
    }

    /// The feature whose run this is now.
    pub(super) fn feature_of(&self, run: &RunId) -> Option<FeatureId> {
        let rest = run.as_str().strip_prefix(self.project.id.as_str())?.strip_prefix('/')?;
        let (feature, _) = rest.rsplit_once('/')?;
        let feature = FeatureId::new(feature).ok()?;
        (self.run_of(&feature).as_ref() == Some(run)).then_some(feature)
    }

    pub(super) fn is_claimed(&self, id: &FeatureId) -> bool {
        self.records.get(id).is_some_and(|record| record.claimed)
    }

    pub(super) fn pass(&mut self, id: &FeatureId, commit: String, files: Vec<String>, sessions: u32) {
        self.note_sessions(id, sessions);
        let record = self.record(id);
        record.commit = Some(commit);
        record.claimed = false;
        record.invalidated = None;
        record.judged = false;
        if !files.is_empty() {
            record.files = files;
        }
        self.followed = false;
        self.set(id, FeatureState::Passed);
    }

    pub(super) fn block(&mut self, id: &FeatureId, reason: String) {
        self.set(id, FeatureState::Blocked(reason));
    }

    pub(super) fn unblock(&mut self, id: &FeatureId) {
        if matches!(self.backlog.state(id), Some(FeatureState::Blocked(_))) {
            self.put_back(id);
        }
    }

    /// Starts no further feature; the runs of those that are worked on are cancelled by whoever asks for this.
    pub(super) fn halt(&mut self, request: Request) {
        self.halted = Some(request);
        let states = self.backlog.iter();
        let in_progress = states.filter(|(_, state)| **state == FeatureState::InProgress);
        self.stopping = in_progress.map(|(feature, _)| feature.id.clone()).collect();
    }

    /// Whether a run that was cancelled ended because the project was halted.
    pub(super) fn was_halted(&mut self, id: &FeatureId) -> bool {
        self.stopping.remove(id)
    }

    pub(super) fn put_back(&mut self, id: &FeatureId) {
        self.set(id, FeatureState::Pending);
        let _ = self.backlog.mark_started_before(id);
    }

    pub(super) fn note_sessions(&mut self, id: &FeatureId, sessions: u32) {
        self.record(id).sessions += sessions;
    }

    /// Puts a feature into the queue of those that want to merge.
    pub(super) fn queue(&mut self, ready: Ready) {
        self.admissions.conflicts.learn(&ready.feature, &ready.files);
        self.waiting.push_back(ready);
    }

    pub(super) fn give_back(&mut self, id: &FeatureId) {
        if self.lane.as_ref() == Some(id) {
            self.lane = None;
        }
    }

    /// A run that is over neither merges nor waits to.
    pub(super) fn leave_lane(&mut self, id: &FeatureId) {
        self.give_back(id);
        self.admissions.leave(id);
        self.waiting.retain(|ready| ready.feature != *id);
    }

    /// Whose turn it is to merge, if nobody has it.
    pub(super) fn next_turn(&mut self) -> Option<(RunId, Turn)> {
        if self.lane.is_some() {
            return None;
        }
        let next = self.waiting.iter().position(|ready| self.may_merge(ready))?;
        let ready = self.waiting.remove(next)?;
        let run = self.run_of(&ready.feature)?;
        let regression = regression::checks(self, &ready);
        self.lane = Some(ready.feature);
        Some((run, Turn { regression }))
    }

    /// Finished work that waits for its turn.
    pub(super) fn merge_queue(&self) -> impl Iterator<Item = &Ready> {
        self.waiting.iter()
    }

    /// The feature whose turn it is.
    pub(super) fn merging(&self) -> Option<&FeatureId> {
        self.lane.as_ref()
    }

    pub(super) fn is_idle(&self) -> bool {
        self.backlog.counts().in_progress == 0 && (self.halted.is_some() || self.backlog.is_settled())
    }

    pub(super) fn record(&mut self, id: &FeatureId) -> &mut Record {
        self.changed.insert(id.clone());
        self.records.entry(id.clone()).or_default()
    }

    pub(super) fn set(&mut self, id: &FeatureId, state: FeatureState) {
        if restore(&mut self.backlog, id, &state).is_ok() {
            self.record(id).state = state;
        }
    }
}

/// Without a check nothing could ever show that a feature is done.
pub const NO_CHECK: &str = "it has no acceptance check, so nothing can show that it is done: give it `checks` in the \
                        feature list, or the project a [[gate]] in longhaul.toml";

fn restore(backlog: &mut Backlog, id: &FeatureId, state: &FeatureState) -> Result<(), crate::backlog::BacklogError> {
    match state {
        FeatureState::Pending => backlog.mark_pending(id),
        FeatureState::InProgress => backlog.mark_in_progress(id),
        FeatureState::Passed => backlog.mark_passed(id),
        FeatureState::Blocked(reason) => backlog.mark_blocked(id, reason.clone()),
    }
}

fn refused(error: impl std::fmt::Display) -> Stop {
    Stop::Failed(Failure::terminal(error.to_string()))
}

impl Remembered {
    fn nothing() -> Self {
        Self {
            settings: Settings::default(),
            target: String::new(),
            list_file: String::new(),
            features: Vec::new(),
            records: BTreeMap::new(),
            lane: None,
            waiting: VecDeque::new(),
            waits_on_next: None,
            synced: String::new(),
            problem: None,
            halted: None,
            stopping: BTreeSet::new(),
            overrides: Overrides::default(),
            labels: BTreeMap::new(),
            followed: false,
            rollback: None,
            admissions: Admissions::default(),
        }
    }
}
