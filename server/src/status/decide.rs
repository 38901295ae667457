//! The state of a project and its reason, from its run, its published values and its features.

use longhaul_engine::{EventKind, RunId, RunReader, Status, StoreError, Summary};
use longhaul_workflows::narrative;
use longhaul_workflows::project::{Phase, ProjectSummary};
use longhaul_workflows::projection::{ProjectState, State};

use super::{FeatureLine, StatusDocument, StuckRun};
use crate::head::RunHead;

impl StatusDocument {
    /// Decides the state of the project and its reason, after the features are known.
    pub(super) async fn decide(
        &mut self,
        store: &dyn RunReader,
        project: &RunId,
        head: &RunHead,
        summary: Option<ProjectSummary>,
    ) -> Result<(), StoreError> {
        if let Some(summary) = summary {
            self.take_summary(summary);
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
            let how = if self.status == ProjectState::Paused { "paused" } else { "cancelled" };
            return Some(format!("{how}{}", narrative::by(request)));
        }
        let held = |line: &&FeatureLine| line.is_held() || line.status == State::Blocked;
        let mut held = self.features.iter().filter(held);
        let first = held.next().map(|line| {
            let reason = line.reason.as_deref().unwrap_or("it needs a person");
            let reason = reason.lines().next().unwrap_or_default();
            let more = held.count();
            let more = if more == 0 { String::new() } else { format!(" (and {more} more)") };
            format!("{}{more}: {reason}", line.id)
        });
        let stuck = self.stuck.first().map(|stuck| format!("{}: {}", stuck.run, stuck.reason));
        let next = self.waits_on_next.as_ref();
        stuck
            .or_else(|| self.problem.clone())
            .or_else(|| self.machine_wait().map(str::to_owned))
            .or_else(|| self.over_budget.clone())
            .or_else(|| self.sessions_paused.as_ref().map(|paused| paused.reason.clone()))
            .or(first)
            .or_else(|| {
                next.map(|reason| format!("finished work waits on longhaul/next: {reason}"))
            })
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

    fn take_summary(&mut self, view: ProjectSummary) {
        self.root = view.root;
        self.target = view.target;
        self.status = match view.phase {
            Phase::Working if self.active_runs == 0 && self.has_held() => {
                ProjectState::NeedsAttention
            }
            Phase::Working if self.is_running => ProjectState::Running,
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
