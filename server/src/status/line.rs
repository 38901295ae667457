//! The status of a feature.

use longhaul_engine::{RunId, RunReader, Status, StoreError};
use longhaul_workflows::backlog::{Feature, FeatureId, FeatureStatus};
use longhaul_workflows::feature::{FORKED_FROM, FeatureProgress, Stage};
use longhaul_workflows::finding::{Finding, Findings};
use longhaul_workflows::narrative;
use longhaul_workflows::project::{FeatureView, NO_CHECK, signal};
use longhaul_workflows::projection::{AuditEntry, MailboxEntry, ProjectView, State};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::advice;
use crate::head::{self, RunHead};
use crate::owner::Owner;

/// The reason of a feature whose run is over while its project does not take messages.
pub(crate) const UNTAKEN_RESULT: &str =
    "its run is over; the project takes the result when it continues";

/// The status of a feature.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts of a document")]
pub struct FeatureLine {
    /// Its id in the list.
    pub id: String,
    /// Its name in the list.
    pub name: String,
    /// Its state.
    pub status: State,
    /// Whether its checks passed on the target branch.
    pub passes: bool,
    /// Its last run.
    #[schemars(with = "Option<String>")]
    pub run: Option<RunId>,
    /// How many sessions its runs have used.
    pub sessions: u32,
    /// Why it is blocked, waits or needs a person.
    pub reason: Option<String>,
    /// Requests of people that were not taken yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pending: Vec<MailboxEntry>,
    /// The current step.
    pub step: Option<String>,
    /// The dependencies that have not passed.
    pub waiting_for: Vec<String>,
    /// The commit that passed.
    pub commit: Option<String>,
    /// Whether its last run is open.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_open: bool,
    /// Whether `reason` is a clause that says what it waits for.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tells_wait: bool,
    /// Whether it waits for a free place among the agents or checks of the process.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub waits_for_place: bool,
    /// Whether it waits for the approval of a person.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub awaits_approval: bool,
    /// Whether its run cannot continue without a person.
    pub needs_person: bool,
    /// The machine failure (full disk, no descriptors) after which its run waits to retry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
    /// A dependency that was rolled back after this feature passed.
    #[serde(default)]
    pub invalidated: Option<String>,
    /// Findings of its last run: tampering, weak evidence, refused steering.
    #[serde(default)]
    pub findings: Vec<String>,
}

impl FeatureLine {
    /// Whether its run is open and needs a person.
    pub fn is_held(&self) -> bool {
        self.needs_person && self.step.is_some()
    }

    /// Whether its run is open.
    pub fn is_in_progress(&self) -> bool {
        match self.status {
            State::Running | State::Paused | State::Parked => true,
            State::Waiting => self.is_open,
            _ => false,
        }
    }

    /// Whether it was given up, blocked or cancelled.
    pub fn is_stopped(&self) -> bool {
        matches!(self.status, State::Blocked | State::Cancelled)
    }

    /// Whether it is stopped, or a block is requested.
    pub fn is_blocked(&self) -> bool {
        self.is_stopped()
            || self.pending.iter().any(|entry| entry.action.what.is_signal(signal::BLOCK))
    }

    /// The unread requests, and why it makes no progress.
    pub fn remark(&self) -> Option<String> {
        MailboxEntry::remark(&self.pending, self.reason.as_deref())
    }

    /// As published by the project. `has_gates` is set if the list is newer than the published one:
    /// new features are then shown as the next run reads them.
    pub(super) fn of(feature: &Feature, view: &ProjectView, has_gates: Option<bool>) -> Self {
        let mut line = Self {
            id: feature.id.to_string(),
            name: feature.name.clone(),
            status: view.state_of(feature),
            waiting_for: view.missing_of(feature).map(ToString::to_string).collect(),
            ..Self::default()
        };
        if let Some(known) = view.feature(&feature.id) {
            line.take_published(known);
        } else if line.status == State::Blocked {
            line.reason = Some("the list says so".into());
        } else if has_gates == Some(false)
            && feature.checks.is_empty()
            && line.waiting_for.is_empty()
        {
            line.status = State::Blocked;
            line.reason = Some(NO_CHECK.into());
        }
        line.needs_person = line.is_stopped();
        line
    }

    fn take_published(&mut self, known: &FeatureView) {
        self.passes = known.passes;
        self.run.clone_from(&known.run);
        self.sessions = known.sessions;
        self.reason.clone_from(&known.reason);
        if let (None, Some(waits)) = (&self.reason, &known.waits) {
            self.reason = Some(waits.to_string());
            self.tells_wait = true;
        }
        self.commit.clone_from(&known.commit);
        self.invalidated = known.invalidated.as_ref().map(ToString::to_string);
        self.findings = texts(&known.findings);
    }

    /// Merges the state of its run and its published values.
    fn take_run(
        &mut self,
        run: &RunId,
        head: &RunHead,
        progress: Option<FeatureProgress>,
        owner: &Owner,
    ) {
        let stuck = owner.stuck.get(run);
        self.is_open = !head.summary.status.is_terminal();
        let known = progress.as_ref().map(|progress| progress.findings.clone()).unwrap_or_default();
        self.findings = texts(&head.findings(&known));
        self.pending.extend(head.pending());
        // A run also waits for its own session, which works meanwhile.
        let mut waits_for_others = self.reason.is_some();
        if let Some(progress) = progress {
            waits_for_others |= progress.stage.as_ref().is_some_and(Stage::waits_for_others);
            // An answer that is not taken yet needs a process, not a person.
            if progress.stage == Some(Stage::Approval) && !head.is_answered() {
                let answers = advice::approve_or_deny(run);
                self.reason = Some(format!("waits for a person: {answers}"));
                self.awaits_approval = true;
                self.tells_wait = true;
                self.needs_person = true;
            }
            // A run that was cut off is counted with the earlier ones.
            if !is_cut_off(&head.summary.status) {
                self.step = progress.step();
                self.sessions += progress.sessions;
            }
        }
        let held = match (&head.summary.status, stuck) {
            (_, Some(stop)) => Some(stop.to_string()),
            (Status::Parked(effect), None) => Some(effect.to_string()),
            (Status::Paused(request), None) => Some(format!("paused{}", narrative::by(request))),
            _ => None,
        };
        self.status = match &head.summary.status {
            // Its project has not taken the result yet.
            Status::Completed => State::Running,
            status => head::state_of(status, waits_for_others),
        };
        self.take_place(run, owner);
        self.machine = head.machine().filter(|_| stuck.is_none());
        if let Some(cause) = &self.machine {
            self.reason = Some(format!("waiting: {cause}"));
        }
        if held.is_some() {
            self.reason = held;
            self.needs_person = true;
        }
        if head.summary.status == Status::Completed {
            self.step = None;
            self.reason = Some(UNTAKEN_RESULT.to_owned());
        }
    }
}

impl FeatureLine {
    /// A run without a process, or without a place of it, waits.
    pub(super) fn take_place(&mut self, run: &RunId, owner: &Owner) {
        if self.status != State::Running {
            return;
        }
        let place = owner.place_of(run);
        if let Some(place) = place {
            self.waits_for_place = true;
            self.reason.get_or_insert_with(|| place.to_owned());
        }
        if place.is_some() || !owner.runs(run) {
            self.status = State::Waiting;
        }
    }
}

/// The sources of the lines of a project.
pub(super) struct Lines<'a> {
    pub(super) store: &'a dyn RunReader,
    pub(super) view: &'a ProjectView,
    pub(super) has_gates: Option<bool>,
    pub(super) owner: &'a Owner,
    /// Unread requests to the project about single features.
    pub(super) pending: Vec<MailboxEntry>,
}

impl Lines<'_> {
    /// The line of a feature, and whether its run is active.
    pub(super) async fn of(&self, feature: &Feature) -> Result<(FeatureLine, bool), StoreError> {
        let mut line = FeatureLine::of(feature, self.view, self.has_gates);
        let known = self.view.feature(&feature.id);
        if let Some(FeatureView { run: Some(run), passes, .. }) = known {
            line.sessions += sessions_cut_off(self.store, run, *passes).await?;
        }
        self.complete(line, known).await
    }

    /// The line of a published feature that is in progress or blocked, without its name and its
    /// earlier runs, and whether its run is active.
    pub(super) async fn brief(
        &self,
        id: &FeatureId,
        known: &FeatureView,
    ) -> Result<(FeatureLine, bool), StoreError> {
        let mut line = FeatureLine { id: id.to_string(), ..FeatureLine::default() };
        line.status = self.view.state(id);
        line.needs_person = line.is_stopped();
        line.take_published(known);
        self.complete(line, Some(known)).await
    }

    /// Adds the unread requests and the state of the last run, and whether that is active.
    async fn complete(
        &self,
        mut line: FeatureLine,
        known: Option<&FeatureView>,
    ) -> Result<(FeatureLine, bool), StoreError> {
        let of_feature = |entry: &&MailboxEntry| entry.action.feature.as_ref() == Some(&line.id);
        line.pending = self.pending.iter().filter(of_feature).cloned().collect();
        let Some(FeatureView { run: Some(run), status, .. }) = known else {
            return Ok((line, false));
        };
        if *status == FeatureStatus::InProgress {
            let is_active = self.take_open(&mut line, run).await?;
            if line.status == State::Cancelled {
                line.reason = self.ended_by(run).await?.or(line.reason);
            }
            return Ok((line, is_active));
        }
        // The project records that its run was cancelled, but not the requester.
        if line.status == State::Cancelled {
            line.reason = self.ended_by(run).await?.or(line.reason);
        }
        Ok((line, false))
    }

    /// Merges the state of the open run of a feature; true if it is active.
    pub(super) async fn take_open(
        &self,
        line: &mut FeatureLine,
        run: &RunId,
    ) -> Result<bool, StoreError> {
        let Some(head) = RunHead::of(self.store, run).await? else { return Ok(true) };
        let progress = FeatureProgress::published(&self.store.published(run).await?);
        line.take_run(run, &head, progress, self.owner);
        let has_active_session = self.take_sessions(line, run).await?;
        let is_run = self.owner.runs(run);
        if line.is_open && line.status == State::Waiting && !is_run && head.until().is_none() {
            line.reason.get_or_insert_with(|| Owner::NOT_RUN.to_owned());
        }
        let is_active = head.is_active(is_run) || has_active_session;
        Ok(!self.owner.stuck.contains_key(run) && is_active)
    }

    /// The requester of a termination or cancellation, and the reason.
    async fn ended_by(&self, run: &RunId) -> Result<Option<String>, StoreError> {
        let Some(summary) = self.store.summary(run).await? else { return Ok(None) };
        if summary.status != Status::Cancelled {
            return Ok(None);
        }
        let how = |entry: AuditEntry| {
            Some(format!("{}{}", entry.ended()?, narrative::by(&entry.action.request())))
        };
        Ok(head::ended_by(self.store, run, &summary).await.and_then(how))
    }
}

fn texts(findings: &Findings) -> Vec<String> {
    findings.iter().map(Finding::to_string).collect()
}

/// Whether a run ended without a result.
fn is_cut_off(status: &Status) -> bool {
    matches!(status, Status::Cancelled | Status::Failed(_))
}

/// The sessions of those runs of a feature that ended without a result, which the project has not
/// counted.
async fn sessions_cut_off(
    store: &dyn RunReader,
    last: &RunId,
    passes: bool,
) -> Result<u32, StoreError> {
    let number = last.number().unwrap_or_default();
    // The last run of a passed feature has a result.
    let numbers = 1..=if passes { number.saturating_sub(1) } else { number };
    let mut sessions = 0;
    let mut continued_from = String::new();
    for run in numbers.rev().filter_map(|number| last.with_number(number)) {
        let Some(summary) = store.summary(&run).await? else { continue };
        // The sessions of a fork include those of its origin.
        let is_counted =
            continued_from.strip_prefix(run.as_str()).is_some_and(|rest| rest.starts_with('@'));
        continued_from = summary.labels.get(FORKED_FROM).cloned().unwrap_or_default();
        if !is_counted && is_cut_off(&summary.status) {
            let progress = FeatureProgress::published(&store.published(&run).await?);
            sessions += progress.map_or(0, |progress| progress.sessions);
        }
    }
    Ok(sessions)
}
