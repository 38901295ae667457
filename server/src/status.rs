//! The status of a project: one document, printed as a table or as JSON.

mod decide;
mod landing;
mod line;
mod sessions;

use std::path::Path;

use longhaul_activities::files::progress_file_obstacle;
use longhaul_engine::{RequestedBy, RunId, RunReader, Stop, StoreError};
use longhaul_workflows::backlog::FeatureStatus;
use longhaul_workflows::contracts::LoadedBacklog;
use longhaul_workflows::finding::Finding;
use longhaul_workflows::project::{BacklogView, ProjectSummary, SessionsPaused};
pub use longhaul_workflows::projection::ProjectState;
use longhaul_workflows::projection::{ActionKind, MailboxEntry, ProjectView, State};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::head::RunHead;
use crate::owner::Owner;
pub use line::FeatureLine;
pub(crate) use line::UNTAKEN_RESULT;

/// The status of a project.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct StatusDocument {
    /// The id of the project.
    pub project: String,
    /// The top of its checkout.
    pub root: String,
    /// The target branch of finished work.
    pub target: String,
    /// Its state.
    pub status: ProjectState,
    /// Why it makes no progress, or what needs a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Whether a process runs it.
    pub is_running: bool,
    /// Whether its run is closed: terminated or failed. `longhaul run` starts a new one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_over: bool,
    /// The requester of its pause, cancellation or termination, and the reason.
    #[schemars(with = "Option<crate::views::why::RequestedBySchema>")]
    pub stopped_by: Option<RequestedBy>,
    /// The commit of a rollback after which the project has not been run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rolled_back_to: Option<String>,
    /// Requests of people that the project has not taken yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pending: Vec<MailboxEntry>,
    /// The error in its list or settings.
    pub problem: Option<String>,
    /// Why finished work waits on `longhaul/next`.
    pub waits_on_next: Option<String>,
    /// Why no session starts: the agent is unavailable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sessions_paused: Option<SessionsPaused>,
    /// Why no further session is paid: the budget of the project is spent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over_budget: Option<String>,
    /// The sandbox of its programs on this machine (`bubblewrap`, `landlock` or `none`), and why it
    /// is not a stricter one.
    #[serde(default)]
    pub sandbox: Option<String>,
    /// Findings about the project as a whole: moved branches, and edits of the list or the settings
    /// during sessions.
    #[serde(default)]
    pub findings: Vec<String>,
    /// The last sync that it has applied.
    pub synced: String,
    /// Runs that cannot go on in the process that runs them.
    pub stuck: Vec<StuckRun>,
    /// How many of its runs are active.
    pub active_runs: usize,
    /// The machine failure after which the run of the project waits to retry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
    /// Feature counts by state.
    pub counts: Counts,
    /// The features, in the order of the list.
    pub features: Vec<FeatureLine>,
}

/// A run that cannot go on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StuckRun {
    /// The run.
    #[schemars(with = "String")]
    pub run: RunId,
    /// Why.
    pub reason: String,
    /// Whether the code diverges from the history; else the log or the disk failed.
    pub has_diverged: bool,
}

/// Feature counts by state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Counts {
    /// All features.
    pub total: usize,
    /// Passed.
    pub passed: usize,
    /// An agent, a set-up, a check or a merge is at work.
    pub running: usize,
    /// In progress, but it waits for a place, a turn or a person, or is paused or parked.
    #[serde(default)]
    pub waiting: usize,
    /// Given up, or blocked by a person.
    pub blocked: usize,
    /// Cancelled by a person.
    #[serde(default)]
    pub cancelled: usize,
    /// Not started.
    pub pending: usize,
}

impl std::iter::Sum for Counts {
    fn sum<I: Iterator<Item = Self>>(counts: I) -> Self {
        counts.fold(Self::default(), |sum, counts| Self {
            total: sum.total + counts.total,
            passed: sum.passed + counts.passed,
            running: sum.running + counts.running,
            waiting: sum.waiting + counts.waiting,
            blocked: sum.blocked + counts.blocked,
            cancelled: sum.cancelled + counts.cancelled,
            pending: sum.pending + counts.pending,
        })
    }
}

impl Counts {
    fn of(lines: &[FeatureLine]) -> Self {
        let mut counts = Self { total: lines.len(), ..Self::default() };
        for line in lines {
            *match line.status {
                State::Passed => &mut counts.passed,
                State::Blocked => &mut counts.blocked,
                State::Cancelled => &mut counts.cancelled,
                State::Running => &mut counts.running,
                _ if line.is_in_progress() => &mut counts.waiting,
                _ => &mut counts.pending,
            } += 1;
        }
        counts
    }

    /// The counts of a project, from the lines of those features that are in progress or blocked.
    fn of_brief(lines: &[FeatureLine], summary: &ProjectSummary) -> Self {
        let begun = lines.len() + summary.passed;
        Self {
            total: summary.features,
            passed: summary.passed,
            pending: summary.features.saturating_sub(begun),
            ..Self::of(lines)
        }
    }

    /// Whether all features passed.
    pub(crate) fn is_all_passed(self) -> bool {
        self.passed == self.total
    }
}

/// The status of a project by the log, with its current list if known.
pub async fn of_project(
    store: &dyn RunReader,
    project: &RunId,
    owner: &Owner,
    list: Option<LoadedBacklog>,
) -> Result<StatusDocument, StoreError> {
    // Read the mailbox before the published values: a project that waits with an empty mailbox has
    // published the effect of its messages.
    let head = RunHead::of(store, project)
        .await?
        .ok_or_else(|| StoreError::UnknownRun(project.clone()))?;
    let mut view = ProjectView::of(&store.published(project).await?);
    let has_gates = list.as_ref().map(|list| !list.settings.gates.is_empty());
    view.backlog = list.map_or(view.backlog, |list| list.features);
    let mut document = StatusDocument { project: project.to_string(), ..StatusDocument::default() };
    let pending = document.take_head(&head, project, owner);
    let lines = line::Lines { store, view: &view, has_gates, owner, pending };
    for feature in &view.backlog {
        let (line, is_active) = lines.of(feature).await?;
        document.active_runs += usize::from(is_active);
        document.features.push(line);
    }
    document.counts = Counts::of(&document.features);
    document.findings = view.findings.iter().map(Finding::to_string).collect();
    if let Some(summary) = &view.summary {
        document.findings.extend(progress_file_obstacle(Path::new(&summary.root)));
    }
    document.decide(store, project, &head, &view).await?;
    Ok(document)
}

/// The status of a project with only the features that are in progress or blocked: the same state
/// and reason at a lower cost.
pub async fn brief(
    store: &dyn RunReader,
    project: &RunId,
    owner: &Owner,
) -> Result<StatusDocument, StoreError> {
    let head = RunHead::of(store, project)
        .await?
        .ok_or_else(|| StoreError::UnknownRun(project.clone()))?;
    let view = ProjectView::of(&store.published_except(project, BacklogView::KEY).await?);
    let mut document = StatusDocument { project: project.to_string(), ..StatusDocument::default() };
    let pending = document.take_head(&head, project, owner);
    let lines = line::Lines { store, view: &view, has_gates: None, owner, pending };
    for (id, known) in &view.features {
        if matches!(known.status, FeatureStatus::InProgress | FeatureStatus::Blocked) {
            let (line, is_active) = lines.brief(id, known).await?;
            document.active_runs += usize::from(is_active);
            document.features.push(line);
        }
    }
    let counts = view.summary.as_ref().map(|of| Counts::of_brief(&document.features, of));
    document.counts = counts.unwrap_or_default();
    document.decide(store, project, &head, &view).await?;
    Ok(document)
}

/// The line of the feature of an open run, without its earlier runs.
pub(crate) async fn open_line(
    store: &dyn RunReader,
    view: &ProjectView,
    run: &RunId,
    owner: &Owner,
) -> Result<FeatureLine, StoreError> {
    let known = view.features.iter().find(|(_, known)| known.run.as_ref() == Some(run));
    let lines = line::Lines { store, view, has_gates: None, owner, pending: Vec::new() };
    let waits = known.and_then(|(_, known)| known.waits.as_ref().map(ToString::to_string));
    let mut line = FeatureLine { reason: waits, ..FeatureLine::default() };
    lines.take_open(&mut line, run).await?;
    Ok(line)
}

/// The status of a project without a log entry: claims of its list count as pending.
pub fn of_files(project: &RunId, root: &str, loaded: Option<LoadedBacklog>) -> StatusDocument {
    let mut document = StatusDocument {
        project: project.to_string(),
        root: root.to_owned(),
        ..StatusDocument::default()
    };
    let Some(LoadedBacklog { features, settings, target, .. }) = loaded else { return document };
    let view = ProjectView::default().with_list(features);
    let line = |feature| FeatureLine::of(feature, &view, Some(!settings.gates.is_empty()));
    document.features = view.backlog.iter().map(line).collect();
    document.target = target;
    document.counts = Counts::of(&document.features);
    document
}

impl StuckRun {
    pub(crate) fn of(run: &RunId, stop: &Stop) -> Self {
        Self {
            run: run.clone(),
            reason: stop.to_string(),
            has_diverged: matches!(stop, Stop::Diverged(_)),
        }
    }
}

/// What a limited wait waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitedResource {
    /// The machine has no room or no descriptors.
    Machine,
    /// The agent is missing or not logged in.
    Agent,
}

impl std::fmt::Display for LimitedResource {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::Machine => "machine",
            Self::Agent => "agent",
        })
    }
}

/// A wait that `longhaul run` limits in time.
#[derive(Debug, Clone, Copy)]
pub struct LimitedWait<'a> {
    /// What it waits for.
    pub of: LimitedResource,
    /// The cause.
    pub cause: &'a str,
}

impl StatusDocument {
    /// Whether the project has not read its list yet.
    pub fn is_new(&self) -> bool {
        self.synced.is_empty()
    }

    /// Whether a person has to act, although other features may still progress.
    pub fn needs_person(&self) -> bool {
        let held = |line: &FeatureLine| line.is_held() || line.is_stopped();
        match self.status {
            ProjectState::NeedsAttention => true,
            ProjectState::Running | ProjectState::Waiting => {
                self.features.iter().any(held)
                    || self.problem.is_some()
                    || !self.stuck.is_empty()
                    || self.agent_wait().is_some()
            }
            ProjectState::Done | ProjectState::Cancelled | ProjectState::Paused => false,
        }
    }

    /// Whether the last unread request to pause or resume it is one to pause.
    pub fn is_to_pause(&self) -> bool {
        let mut orders = self.pending.iter().rev().map(|entry| &entry.action.what);
        let last = orders.find(|what| matches!(what, ActionKind::Pause | ActionKind::Resume));
        last == Some(&ActionKind::Pause)
    }

    /// The unread requests to the project and to its features, each with its feature.
    pub fn all_pending(&self) -> Vec<MailboxEntry> {
        let of_features = self.features.iter().flat_map(|line| {
            line.pending.iter().cloned().map(|mut entry| {
                entry.action.feature.get_or_insert_with(|| line.id.clone());
                entry
            })
        });
        self.pending.iter().cloned().chain(of_features).collect()
    }

    /// Whether an active feature needs a person.
    pub(crate) fn has_held(&self) -> bool {
        self.features.iter().any(FeatureLine::is_held)
    }

    /// Takes the state of its run; returns the unread requests about features.
    fn take_head(&mut self, head: &RunHead, project: &RunId, owner: &Owner) -> Vec<MailboxEntry> {
        let stuck = &owner.stuck;
        self.is_running = owner.runs(project);
        let is_stuck = stuck.contains_key(project);
        let (about_features, pending) =
            head.pending().into_iter().partition(|entry| entry.action.feature.is_some());
        self.pending = pending;
        self.is_over = head.summary.status.is_terminal();
        let below = stuck.iter().filter(|(run, _)| run.is_within(project.as_str()));
        self.stuck = below.map(|(run, stop)| StuckRun::of(run, stop)).collect();
        self.active_runs = usize::from(!is_stuck && head.is_active(self.is_running));
        self.machine = head.machine().filter(|_| !is_stuck);
        about_features
    }

    /// The first line of the machine failure that all active work waits for; `None` if anything
    /// progresses.
    pub fn machine_wait(&self) -> Option<&str> {
        let causes = self
            .features
            .iter()
            .filter_map(|line| line.machine.as_deref())
            .chain(self.machine.as_deref());
        let is_all = self.active_runs > 0 && causes.clone().count() == self.active_runs;
        causes.clone().next().filter(|_| is_all).and_then(|cause| cause.lines().next())
    }

    /// The pause of sessions that all active work waits for, if a person must end it: the agent is
    /// missing or not logged in. The project itself stays active because of the timer of the next
    /// probe.
    pub(crate) fn agent_wait(&self) -> Option<&SessionsPaused> {
        let is_working = matches!(self.status, ProjectState::Running | ProjectState::Waiting);
        let is_all = is_working && self.active_runs <= 1 && self.machine.is_none();
        self.sessions_paused
            .as_ref()
            .filter(|paused| is_all && paused.needs_person && paused.until.is_some())
    }

    /// The wait that `longhaul run` limits in time, if there is one.
    pub fn limited_wait(&self) -> Option<LimitedWait<'_>> {
        let of = LimitedResource::Machine;
        let machine = self.machine_wait().map(|cause| LimitedWait { of, cause });
        machine.or_else(|| {
            let paused = self.agent_wait()?;
            Some(LimitedWait { of: LimitedResource::Agent, cause: &paused.reason })
        })
    }
}
