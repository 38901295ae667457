//! Publishes changed values, so that readers see the state of a project without reading its
//! history.

use longhaul_engine::{Context, ContextExt, Payload, Stop};

use crate::backlog::{FeatureId, FeatureState, FeatureStatus};
use crate::finding::Findings;

use super::state::ProjectRun;
use super::view::{BacklogView, FeatureView, Phase, ProjectSummary};
use crate::finding::Skipped;

impl ProjectRun {
    /// Publishes the changed features, then the project.
    pub(super) async fn publish(&mut self, context: &mut dyn Context) -> Result<(), Stop> {
        for feature in std::mem::take(&mut self.changed) {
            let value =
                self.feature_view(&feature).map_or_else(Payload::null, |view| Payload::of(&view));
            context.publish(&FeatureView::key(&feature), value).await?;
        }
        if let Some(skipped) = self.skipped.take() {
            context.set(Skipped::KEY, &skipped).await?;
        }
        if std::mem::take(&mut self.has_findings) {
            context.set(Findings::KEY, &self.findings).await?;
        }
        let view = self.view();
        if self.published.as_ref() != Some(&view) {
            context.set(ProjectSummary::KEY, &view).await?;
            self.published = Some(view);
        }
        Ok(())
    }

    pub(super) async fn publish_backlog(&self, context: &mut dyn Context) -> Result<(), Stop> {
        let features = self.backlog.iter().map(|(feature, _)| feature.clone()).collect();
        context.set(BacklogView::KEY, &BacklogView { features }).await
    }

    fn view(&self) -> ProjectSummary {
        let counts = self.backlog.counts();
        let phase = match (&self.halted, self.is_idle()) {
            (Some(_), true) => Phase::Halted,
            (None, true) => Phase::Idle,
            _ => Phase::Working,
        };
        ProjectSummary {
            root: self.project.root.clone(),
            target: self.target.clone(),
            list_file: self.list_file.clone(),
            phase,
            halted: self.halted.clone(),
            synced: self.synced.clone(),
            problem: self.problem.clone(),
            waits_on_next: self.waits_on_next.clone(),
            paused: self.admission.paused.clone(),
            over_budget: self.over_budget().map(|reason| reason.to_string()),
            merging: self.queue.holders().cloned().collect(),
            merge_queue: self.queue.waiting().map(|ready| ready.feature.clone()).collect(),
            parallel: self.parallel(),
            features: counts.total(),
            passed: counts.passed,
            in_progress: counts.in_progress,
            blocked: counts.blocked,
        }
    }

    fn feature_view(&self, id: &FeatureId) -> Option<FeatureView> {
        let record = self.records.get(id)?;
        let (status, block) = match &record.state {
            FeatureState::Pending => (FeatureStatus::Pending, None),
            FeatureState::InProgress => (FeatureStatus::InProgress, None),
            FeatureState::Passed => (FeatureStatus::Completed, None),
            FeatureState::Blocked(block) => (FeatureStatus::Blocked, Some(block.clone())),
        };
        Some(FeatureView {
            status,
            passes: record.state == FeatureState::Passed,
            run: self.run_of(id),
            sessions: record.sessions,
            cause: block.as_ref().map(|block| block.cause),
            reason: block.map(|block| block.reason),
            waits: self.admission.reasons.get(id).cloned(),
            commit: record.commit.clone(),
            called_done: record.called_done,
            claimed: record.claimed,
            invalidated: record.invalidated.clone(),
            findings: record.findings.clone(),
        })
    }
}
