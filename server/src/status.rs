//! Where a project stands: one document, shown as a table or as JSON.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use longhaul_engine::{EventKind, RequestedBy, RunId, RunReader, Status, Stop, StoreError, Summary};
use longhaul_workflows::backlog::{Feature, FeatureStatus};
use longhaul_workflows::contracts::LoadedBacklog;
use longhaul_workflows::feature::{FORKED_FROM, FeatureProgress};
use longhaul_workflows::finding::Findings;
use longhaul_workflows::project::{BacklogView, CANCELLED, FeatureView, NO_CHECK, Phase, ProjectView, SessionsPaused};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::findings;
use crate::overlay::Features;
use crate::pending::Pending;
use crate::views::ended_by;

/// Where a project stands.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct StatusDocument {
    /// The id of the project.
    pub project: String,
    /// The top of its checkout.
    pub root: String,
    /// The branch that finished work goes to.
    pub target: String,
    /// What it does now.
    pub phase: ShownPhase,
    /// Whether a process runs it now.
    pub is_running: bool,
    /// Whether its run is over: terminated, or failed. `longhaul run` begins it again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_over: bool,
    /// Who paused, halted or terminated it, and why.
    #[schemars(with = "Option<crate::views::why::Asked>")]
    pub stopped_by: Option<RequestedBy>,
    /// What is wrong with its list or settings.
    pub problem: Option<String>,
    /// Why finished work waits on `longhaul/next`.
    pub waits_on_next: Option<String>,
    /// Why no session begins: an agent is out of order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sessions_paused: Option<PausedSessions>,
    /// The sandbox of its programs on this machine: `bubblewrap`, `landlock` or `none`, and why it is not a stricter one.
    #[serde(default)]
    pub sandbox: Option<String>,
    /// What a person should know of the project as a whole: branches, the list and the settings changed during sessions.
    #[serde(default)]
    pub findings: Vec<String>,
    /// The last sync that was followed.
    pub synced: String,
    /// Runs that cannot go on in the process that runs them.
    pub stuck: Vec<StuckRun>,
    /// How many runs of it have something to do now.
    pub active_runs: usize,
    /// The failure of the machine that the run of the project waits out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
    /// How many features are in which state.
    pub counts: Counts,
    /// The features, in the order of the list.
    pub features: Vec<FeatureLine>,
}

/// No session of a project begins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PausedSessions {
    /// When one probes the agent; absent: one does now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<DateTime<Utc>>,
    /// Why.
    pub reason: String,
    /// Since when.
    pub since: DateTime<Utc>,
    /// The agent cannot be started, or no session of it got through since a person had the project run.
    pub needs_person: bool,
}

/// A run that cannot go on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StuckRun {
    /// The run.
    #[schemars(with = "String")]
    pub run: RunId,
    /// Why.
    pub reason: String,
    /// Whether its code does something else than its history says; else the log or the disk failed.
    pub has_diverged: bool,
}

/// Whether a project works.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ShownPhase {
    /// It has never run.
    New,
    /// Something is being done, or will be when it is run.
    Working,
    /// All features pass, or the rest needs a person.
    Idle,
    /// Somebody cancelled it.
    Halted,
    /// Somebody paused it.
    Paused,
}

/// How many features there are of each kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Counts {
    /// All features.
    pub total: usize,
    /// Those that pass.
    pub passing: usize,
    /// Those that are worked on.
    pub in_progress: usize,
    /// Those that were given up.
    pub blocked: usize,
    /// Those that wait for their turn.
    pub pending: usize,
}

/// Where a feature stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FeatureLine {
    /// Its id in the list.
    pub id: String,
    /// Its name in the list.
    pub name: String,
    /// `pending`, `in_progress`, `completed` or `blocked`.
    #[schemars(with = "String")]
    pub status: FeatureStatus,
    /// Whether its checks passed on the target branch.
    pub passes: bool,
    /// Its last run.
    #[schemars(with = "Option<String>")]
    pub run: Option<RunId>,
    /// How many sessions its runs have used.
    pub sessions: u32,
    /// Why it is blocked, or needs a person.
    pub reason: Option<String>,
    /// What is being done.
    pub step: Option<String>,
    /// The dependencies that do not pass yet.
    pub waiting_for: Vec<String>,
    /// The commit that passed.
    pub commit: Option<String>,
    /// Whether its run can go on only when a person does something.
    pub needs_person: bool,
    /// The failure of the machine that its run waits out: a full disk, no descriptors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
    /// The feature that was taken back since this one passed, on which it depends.
    #[serde(default)]
    pub invalidated: Option<String>,
    /// What a person should know of its last run: tampering, weak evidence, refused steering.
    #[serde(default)]
    pub findings: Vec<String>,
}

/// The root of a project, as the log knows it.
pub async fn known_root(store: &dyn RunReader, project: &RunId) -> Result<Option<String>, StoreError> {
    let published = store.published(project).await?;
    let view = published.get(ProjectView::KEY).and_then(|view| view.read::<ProjectView>().ok());
    Ok(view.map(|view| view.root))
}

/// The runs of a project that cannot go on.
fn stuck_below(project: &RunId, stuck: &BTreeMap<RunId, Stop>) -> Vec<StuckRun> {
    let shown = |(run, stop): (&RunId, &Stop)| StuckRun {
        run: run.clone(),
        reason: stop.to_string(),
        has_diverged: matches!(stop, Stop::Diverged(_)),
    };
    stuck.iter().filter(|(run, _)| run.is_within(project.as_str())).map(shown).collect()
}

/// Where a project stands, by the log.
pub async fn of_project(
    store: &dyn RunReader,
    project: &RunId,
    stuck: &BTreeMap<RunId, Stop>,
    is_running: bool,
) -> Result<StatusDocument, StoreError> {
    // In this order: a project that waits after its mailbox was seen empty has acted on every message that it was sent
    // before, and what it has published is what came of them.
    let has_mail = is_running && store.mailbox(project).await?.iter().any(|message| message.body.is_for_workflow());
    let summary = store.summary(project).await?.ok_or_else(|| StoreError::UnknownRun(project.clone()))?;
    let Features { published, views, is_changed } = Features::of(store, project).await?;
    let view = published.get(ProjectView::KEY).and_then(|view| view.read::<ProjectView>().ok());
    let backlog = published.get(BacklogView::KEY).and_then(|view| view.read::<BacklogView>().ok());
    let standing = standing(store, project, &summary, stuck, is_running).await?;
    let is_to_act = has_mail && standing.can_act;
    let mut document = StatusDocument {
        project: project.to_string(),
        root: String::new(),
        target: String::new(),
        phase: ShownPhase::New,
        is_running,
        is_over: summary.status.is_terminal(),
        stopped_by: None,
        problem: None,
        waits_on_next: None,
        sessions_paused: None,
        sandbox: None,
        findings: Vec::new(),
        synced: String::new(),
        stuck: stuck_below(project, stuck),
        active_runs: usize::from(standing.is_active || is_to_act),
        machine: standing.machine.clone(),
        counts: Counts::default(),
        features: Vec::new(),
    };
    for feature in backlog.map(|backlog| backlog.features).unwrap_or_default() {
        let view = views.get(feature.id.as_str());
        let (line, is_active) = line(store, &feature, view, &views, stuck, is_running).await?;
        document.active_runs += usize::from(is_active);
        document.features.push(line);
    }
    document.count();
    let found = published.get(Findings::KEY).and_then(|found| found.read::<Findings>().ok());
    document.findings = found.as_ref().map(findings::texts).unwrap_or_default();
    if let Some(view) = view {
        document.take_view(view);
    }
    // At rest, what it was told since is done when it is run again.
    if is_changed && document.phase == ShownPhase::Idle && document.is_unfinished() {
        document.phase = ShownPhase::Working;
    }
    if document.is_over {
        document.take_end(store, project, &summary).await?;
    }
    if let Some(request) = standing.paused {
        document.phase = ShownPhase::Paused;
        document.stopped_by = Some(request);
    }
    Ok(document)
}

/// Where a project stands that no log knows: what its list claims to be done is pending.
pub fn of_files(project: &RunId, root: &str, loaded: &LoadedBacklog) -> StatusDocument {
    let mut document = StatusDocument {
        project: project.to_string(),
        root: root.into(),
        target: loaded.target.clone(),
        phase: ShownPhase::New,
        is_running: false,
        is_over: false,
        stopped_by: None,
        problem: None,
        waits_on_next: None,
        sessions_paused: None,
        sandbox: None,
        findings: Vec::new(),
        synced: String::new(),
        stuck: Vec::new(),
        active_runs: 0,
        machine: None,
        counts: Counts::default(),
        features: Vec::new(),
    };
    document.take_list(loaded);
    document
}

impl StatusDocument {
    /// How the run of the project ended.
    async fn take_end(&mut self, store: &dyn RunReader, project: &RunId, summary: &Summary) -> Result<(), StoreError> {
        self.phase = ShownPhase::Halted;
        match store.read(project, summary.origin).await?.pop().map(|event| event.kind) {
            Some(EventKind::RunTerminated(request)) => self.stopped_by = Some(request),
            Some(EventKind::RunFailed { failure }) => {
                self.stuck.push(StuckRun { run: project.clone(), reason: failure.message, has_diverged: false });
            }
            _ => {}
        }
        Ok(())
    }

    fn take_view(&mut self, view: ProjectView) {
        self.root = view.root;
        self.target = view.target;
        self.phase = match view.phase {
            Phase::Working => ShownPhase::Working,
            Phase::Idle => ShownPhase::Idle,
            Phase::Halted => ShownPhase::Halted,
        };
        self.stopped_by = view.halted;
        self.problem = view.problem;
        self.waits_on_next = view.waits_on_next;
        let shown = |paused: SessionsPaused| {
            let SessionsPaused { until, reason, since, needs_person } = paused;
            PausedSessions { until, reason, since, needs_person }
        };
        self.sessions_paused = view.paused.map(shown);
        self.synced = view.synced;
    }

    /// Shows the features of this list: those that are new to the log as the next run takes them, those that are gone not at
    /// all.
    pub fn take_list(&mut self, loaded: &LoadedBacklog) {
        let mut known: BTreeMap<String, FeatureLine> =
            self.features.drain(..).map(|line| (line.id.clone(), line)).collect();
        let passing: BTreeSet<String> = known.values().filter(|line| line.passes).map(|line| line.id.clone()).collect();
        for feature in &loaded.features {
            let known = known.remove(feature.id.as_str());
            let is_new = known.is_none();
            let mut line = known.unwrap_or_else(|| FeatureLine::pending(feature));
            let depends = feature.depends_on.iter().map(ToString::to_string);
            line.waiting_for = depends.filter(|id| !passing.contains(id)).collect();
            line.name.clone_from(&feature.name);
            if is_new {
                line.expect(feature, !loaded.settings.gates.is_empty());
            }
            self.features.push(line);
        }
        self.count();
    }

    /// The failure of the machine that all waits for that is under way: its first line. `None`: something else goes on.
    pub fn machine_wait(&self) -> Option<&str> {
        let causes = self.features.iter().filter_map(|line| line.machine.as_deref()).chain(self.machine.as_deref());
        let is_all = self.active_runs > 0 && causes.clone().count() == self.active_runs;
        causes.clone().next().filter(|_| is_all).and_then(|cause| cause.lines().next())
    }

    /// The pause of sessions that all waits for that is under way, if a person has to end it: the agent is missing or
    /// not logged in. The project itself is active: it has a timer for the next probe.
    pub fn agent_wait(&self) -> Option<&PausedSessions> {
        let is_all = self.phase == ShownPhase::Working && self.active_runs <= 1 && self.machine.is_none();
        self.sessions_paused.as_ref().filter(|paused| is_all && paused.needs_person && paused.until.is_some())
    }

    /// What all waits for that is under way, if `longhaul run` does not wait for it for ever: the machine, or the agent.
    pub fn vain_wait(&self) -> Option<(&'static str, &str)> {
        let machine = self.machine_wait().map(|cause| ("machine", cause));
        machine.or_else(|| self.agent_wait().map(|paused| ("agent", paused.reason.as_str())))
    }

    /// Whether there is something to do that needs no person.
    fn is_unfinished(&self) -> bool {
        let is_open = |line: &FeatureLine| matches!(line.status, FeatureStatus::Pending | FeatureStatus::InProgress);
        self.features.iter().any(is_open)
    }

    fn count(&mut self) {
        let count = |status| self.features.iter().filter(|line| line.status == status).count();
        self.counts = Counts {
            total: self.features.len(),
            passing: self.features.iter().filter(|line| line.passes).count(),
            in_progress: count(FeatureStatus::InProgress),
            blocked: count(FeatureStatus::Blocked),
            pending: count(FeatureStatus::Pending),
        };
    }
}

impl FeatureLine {
    /// Whether its run is under way, and goes on only when a person does something.
    pub fn is_held(&self) -> bool {
        self.needs_person && self.step.is_some()
    }

    /// What the next run makes of a feature that is new to it, before anything is tried.
    fn expect(&mut self, feature: &Feature, has_gates: bool) {
        let reason = match feature.status {
            FeatureStatus::Blocked if !feature.passes => "the list says so",
            _ if feature.checks.is_empty() && !has_gates && self.waiting_for.is_empty() => NO_CHECK,
            _ => return,
        };
        (self.status, self.needs_person, self.reason) = (FeatureStatus::Blocked, true, Some(reason.into()));
    }

    fn pending(feature: &Feature) -> Self {
        Self {
            id: feature.id.to_string(),
            name: feature.name.clone(),
            status: FeatureStatus::Pending,
            passes: false,
            run: None,
            sessions: 0,
            reason: None,
            step: None,
            waiting_for: Vec::new(),
            commit: None,
            needs_person: false,
            machine: None,
            invalidated: None,
            findings: Vec::new(),
        }
    }
}

async fn line(
    store: &dyn RunReader,
    feature: &Feature,
    view: Option<&FeatureView>,
    views: &BTreeMap<String, FeatureView>,
    stuck: &BTreeMap<RunId, Stop>,
    is_running: bool,
) -> Result<(FeatureLine, bool), StoreError> {
    let mut line = FeatureLine::pending(feature);
    let passes = |id: &str| views.get(id).is_some_and(|view| view.passes);
    line.waiting_for = feature.depends_on.iter().map(ToString::to_string).filter(|id| !passes(id)).collect();
    let Some(view) = view else { return Ok((line, false)) };
    line.status = view.status;
    line.passes = view.passes;
    line.run.clone_from(&view.run);
    line.sessions = view.sessions;
    line.reason = view.reason.clone().or_else(|| view.waits.clone());
    line.commit.clone_from(&view.commit);
    line.needs_person = view.status == FeatureStatus::Blocked;
    line.invalidated = view.invalidated.as_ref().map(ToString::to_string);
    line.findings = findings::texts(&view.findings);
    let Some(run) = &view.run else { return Ok((line, false)) };
    line.sessions += sessions_cut_off(store, run, view.passes).await?;
    if view.status != FeatureStatus::InProgress {
        return Ok((line, false));
    }
    line.findings = findings::texts(&findings::of_run(store, run, None).await?);
    let published = store.published(run).await?;
    if let Some(progress) = published.get(FeatureProgress::KEY).and_then(|value| value.read::<FeatureProgress>().ok()) {
        if progress.step == FeatureProgress::AWAITS_APPROVAL {
            line.reason =
                Some(format!("waits for a person: `longhaul approve {run}` or `longhaul deny {run} --why …`"));
            line.needs_person = true;
        }
        line.step = Some(progress.step);
        line.sessions += progress.sessions;
    }
    let Some(summary) = store.summary(run).await? else { return Ok((line, true)) };
    let standing = standing(store, run, &summary, stuck, is_running).await?;
    if let Some(cause) = &standing.machine {
        line.reason = Some(format!("waiting: {cause}"));
        line.machine = standing.machine;
    }
    if let Some(reason) = standing.needs_person {
        line.reason = Some(reason);
        line.needs_person = true;
    }
    if let Some(told) = standing.told {
        line.reason = Some(told);
        line.needs_person = false;
    }
    Ok((line, standing.is_active))
}

/// Says who ended the runs of features, and why, for a person to read. A history that cannot be read tells nothing.
pub async fn name_who_ended(store: &dyn RunReader, document: &mut StatusDocument) {
    for line in document.features.iter_mut().filter(|line| line.reason.as_deref() == Some(CANCELLED)) {
        let Some(run) = &line.run else { continue };
        if let Some(ended) = store.read(run, 0).await.ok().and_then(|history| ended_by(&history)) {
            line.reason = Some(ended);
        }
    }
}

/// The sessions of runs of a feature that came to no result: no outcome has told the project of them.
async fn sessions_cut_off(store: &dyn RunReader, last: &RunId, passes: bool) -> Result<u32, StoreError> {
    let Some((of_feature, number)) = last.as_str().rsplit_once('/') else { return Ok(0) };
    let number: u32 = number.parse().unwrap_or_default();
    // The last run of one that passes has a result.
    let numbers = 1..=if passes { number.saturating_sub(1) } else { number };
    let (mut sessions, mut gone_on_from) = (0, String::new());
    for run in numbers.rev().filter_map(|number| RunId::new(format!("{of_feature}/{number}")).ok()) {
        let Some(summary) = store.summary(&run).await? else { continue };
        // What goes on from another run counts the sessions of that one among its own.
        let is_counted = gone_on_from.strip_prefix(run.as_str()).is_some_and(|rest| rest.starts_with('@'));
        gone_on_from = summary.labels.get(FORKED_FROM).cloned().unwrap_or_default();
        if !is_counted && matches!(summary.status, Status::Cancelled | Status::Failed(_)) {
            let published = store.published(&run).await?;
            let progress = published.get(FeatureProgress::KEY).and_then(|value| value.read::<FeatureProgress>().ok());
            sessions += progress.map_or(0, |progress| progress.sessions);
        }
    }
    Ok(sessions)
}

/// Where a run stands, the orders that wait in its mailbox included.
struct RunHead {
    is_active: bool,
    /// Whether it takes messages by itself: it is not paused, parked, stuck or over.
    can_act: bool,
    paused: Option<RequestedBy>,
    /// What it was told, and is done before all else.
    told: Option<String>,
    needs_person: Option<String>,
    /// The failure of the machine that it waits out.
    machine: Option<String>,
}

async fn standing(
    store: &dyn RunReader,
    run: &RunId,
    summary: &Summary,
    stuck: &BTreeMap<RunId, Stop>,
    is_running: bool,
) -> Result<RunHead, StoreError> {
    let pending = Pending::of(store, run).await?;
    let paused = pending.paused(match &summary.status {
        Status::Paused(request) => Some(request.clone()),
        _ => None,
    });
    let is_stuck = stuck.get(run).map(ToString::to_string);
    let parked = match &summary.status {
        Status::Parked(effect) if pending.settled.is_none() => Some(effect.to_string()),
        _ => None,
    };
    let by_whom = paused.as_ref().map(|request| match request.why.as_str() {
        "" => format!("paused by {}", request.by),
        why => format!("paused by {}: {why}", request.by),
    });
    // A run that is to pause still does what it is doing.
    let works = match &summary.status {
        Status::Running => true,
        // What is in its mailbox is taken by what waits, even if nobody has told it yet.
        Status::Waiting { until, .. } => until.is_some() || (is_running && pending.is_something),
        _ => false,
    };
    let can_act = matches!(&summary.status, Status::Running | Status::Waiting { .. }) && is_stuck.is_none();
    let told = if pending.decides() { pending.words(is_running) } else { None };
    let needs_person = is_stuck.clone().or(parked).or(by_whom);
    let machine = match &summary.status {
        Status::Waiting { machine, .. } if is_stuck.is_none() => machine.clone(),
        _ => None,
    };
    Ok(RunHead { is_active: works && is_stuck.is_none(), can_act, paused, told, needs_person, machine })
}
