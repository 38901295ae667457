//! The state of a project and its reason, from its run, its published values and its features.

use longhaul_engine::{EventKind, RunId, RunReader, Status, StoreError, Summary};
use longhaul_workflows::narrative;
use longhaul_workflows::project::{Phase, ProjectSummary};
use longhaul_workflows::projection::{ProjectState, ProjectView};

use super::{FeatureLine, StatusDocument, StuckRun};
use crate::advice;
use crate::head::RunHead;
use crate::owner::Owner;

impl StatusDocument {
    /// Decides the state of the project and its reason, after the features are known.
    pub(super) async fn decide(
        &mut self,
        store: &dyn RunReader,
        project: &RunId,
        head: &RunHead,
        view: &ProjectView,
    ) -> Result<(), StoreError> {
        if let Some(summary) = view.summary.clone() {
            self.take_summary(summary);
        }
        self.rolled_back_to = view.rolled_back().map(|view| view.rollback.to.clone());
        if self.rolled_back_to.is_some() && !self.is_running {
            // It was not cancelled: it only rests.
            self.status = ProjectState::Waiting;
        }
        if self.is_over {
            self.take_end(store, project, &head.summary).await?;
        }
        if let Status::Paused(request) = &head.summary.status {
            self.status = ProjectState::Paused;
            self.stopped_by = Some(request.clone());
        }
        self.reason = self.why();
        Ok(())
    }

    /// Why the project makes no progress, or what needs a person.
    pub(super) fn why(&self) -> Option<String> {
        if let Some(request) = &self.stopped_by {
            let how = match &self.rolled_back_to {
                _ if self.status == ProjectState::Paused => "paused".to_owned(),
                Some(commit) => format!("rolled back to {}", narrative::short(commit)),
                None if self.is_over => "terminated".to_owned(),
                None => "cancelled".to_owned(),
            };
            return Some(format!("{how}{}", narrative::by(request)));
        }
        let stuck = self.stuck.first().map(|stuck| format!("{}: {}", stuck.run, stuck.reason));
        let next = self.waits_on_next.as_ref();
        stuck
            .or_else(|| self.problem.clone())
            .or_else(|| self.machine_wait().map(str::to_owned))
            .or_else(|| self.over_budget.clone())
            .or_else(|| self.sessions_paused.as_ref().map(|paused| paused.reason.clone()))
            .or_else(|| self.held())
            .or_else(|| {
                next.map(|reason| format!("finished work waits on longhaul/next: {reason}"))
            })
            .or_else(|| self.rest())
    }

    /// The features that need a person: those that wait for one first, then the blocked ones.
    fn held(&self) -> Option<String> {
        let is_stopped = |line: &&FeatureLine| line.is_stopped();
        let held = self.features.iter().filter(|line| !line.is_stopped() && line.is_held());
        let parts = [of_lines(held), of_lines(self.features.iter().filter(is_stopped))];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        (!parts.is_empty()).then(|| parts.join("; "))
    }

    /// Why a project with work left makes no progress.
    fn rest(&self) -> Option<String> {
        if self.status != ProjectState::Waiting || self.is_new() {
            return None;
        }
        let place = self.features.iter().find(|line| line.waits_for_place);
        let place = place.and_then(|line| line.reason.clone());
        if self.is_running { place } else { Some(Owner::NOT_RUN.to_owned()) }
    }

    /// How the run of the project ended.
    async fn take_end(
        &mut self,
        store: &dyn RunReader,
        project: &RunId,
        summary: &Summary,
    ) -> Result<(), StoreError> {
        self.status = ProjectState::Cancelled;
        match store.read(project, summary.origin).await?.pop().map(|event| event.kind) {
            Some(EventKind::RunTerminated(request)) => self.stopped_by = Some(request),
            Some(EventKind::RunFailed { failure }) => {
                self.status = ProjectState::NeedsAttention;
                self.stuck.push(StuckRun {
                    run: project.clone(),
                    reason: failure.message,
                    has_diverged: false,
                });
            }
            _ => {}
        }
        Ok(())
    }

    /// Whether all its work waits for a place in the process, which other projects hold.
    fn is_queued(&self) -> bool {
        self.counts.running == 0 && self.features.iter().any(|line| line.waits_for_place)
    }

    fn take_summary(&mut self, view: ProjectSummary) {
        self.root = view.root;
        self.target = view.target;
        self.status = match view.phase {
            Phase::Working if self.active_runs == 0 && self.has_held() => {
                ProjectState::NeedsAttention
            }
            Phase::Working if self.is_running && !self.is_queued() => ProjectState::Running,
            Phase::Working => ProjectState::Waiting,
            Phase::Idle if self.counts.is_all_passed() && view.waits_on_next.is_none() => {
                ProjectState::Done
            }
            Phase::Idle => ProjectState::NeedsAttention,
            Phase::Halted => ProjectState::Cancelled,
        };
        self.stopped_by = view.halted;
        self.problem = view.problem;
        self.waits_on_next = view.waits_on_next;
        self.sessions_paused = view.paused;
        self.over_budget = view.over_budget;
        self.synced = view.synced;
    }
}

/// Features that need a person, in one line: the first names, and the reason of the first one.
fn of_lines<'a>(mut lines: impl Iterator<Item = &'a FeatureLine>) -> Option<String> {
    const NAMED: usize = 3;
    let first = lines.next()?;
    let reason = match &first.run {
        Some(run) if first.awaits_approval => {
            format!("waits for approval: {}", advice::on("approve", run))
        }
        _ => first.reason.clone().unwrap_or_else(|| "it needs a person".to_owned()),
    };
    let mut names = first.id.clone();
    for line in lines.by_ref().take(NAMED - 1) {
        names += &format!(", {}", line.id);
    }
    let more = lines.count();
    let more = if more == 0 { String::new() } else { format!(" (and {more} more)") };
    Some(format!("{names}{more}: {}", reason.lines().next().unwrap_or_default()))
}
