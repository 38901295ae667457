//! Restarts projects whose run failed or was terminated.

use std::collections::{BTreeMap, BTreeSet};

use longhaul_engine::{
    Engine, EventKind, MessageBody, NewRun, Outcome, Payload, RequestedBy, RunId, Status,
    StoreError, Summary,
};
use longhaul_workflows::backlog::{Feature, FeatureId};
use longhaul_workflows::contracts::{ProjectRef, SessionEnding, SessionReport};
use longhaul_workflows::feature::{FeatureInput, FeatureOutcome};
use longhaul_workflows::project::{
    FeatureRuns, ProjectInput, ProjectView, changes_the_work, signal,
};
use serde::de::DeserializeOwned;

use crate::head::RunHead;
use crate::run_kind::RunKind;
use crate::service::Service;
use crate::views::LatestRuns;

impl Service {
    /// Whether a run is closed, or closes when it takes its messages.
    pub(crate) async fn is_ending(&self, run: &RunId) -> Result<bool, StoreError> {
        Ok(RunHead::of(&*self.store, run).await?.is_some_and(|head| head.is_ending()))
    }

    /// Starts a new run of a project from the published values of the last one. Live children are
    /// terminated first: the new run has no record of their merge leases and sessions.
    pub(crate) async fn begin_again(
        &self,
        engine: &Engine,
        project: &ProjectRef,
        new: NewRun,
    ) -> Result<(), StoreError> {
        engine.outcome(&new.run).await?;
        let prefix = format!("{}/", new.run);
        let below = self.store.runs(&prefix).await?;
        for (run, _) in below.iter().filter(|(_, summary)| !summary.status.is_terminal()) {
            let request = RequestedBy::longhaul("its project is begun again");
            engine.deliver(run, MessageBody::Terminate(request)).await?;
            engine.outcome(run).await?;
        }
        let published = self.store.published(&new.run).await?;
        let mut runs = self.feature_runs(&new.run, &below).await?;
        let listed: BTreeSet<FeatureId> =
            ProjectView::of(&published).backlog.into_iter().map(|feature| feature.id).collect();
        for (id, runs) in runs.iter_mut().filter(|(id, _)| !listed.contains(id)) {
            runs.removed = self.feature_of(&format!("{}/{id}/{}", new.run, runs.last)).await?;
        }
        let input = Payload::of(&ProjectInput::recovered(project.clone(), &published, runs));
        engine.restart(NewRun { input, ..new }).await
    }

    /// The last run of each feature of a project, out of the runs below that.
    async fn feature_runs(
        &self,
        project: &RunId,
        below: &[(RunId, Summary)],
    ) -> Result<BTreeMap<FeatureId, FeatureRuns>, StoreError> {
        let mut runs = BTreeMap::new();
        for (feature, last) in LatestRuns::of(below).of_project(project) {
            let run = format!("{project}/{feature}/{last}");
            let mut known = FeatureRuns { last, ..FeatureRuns::default() };
            match self.output(&run).await? {
                Some(FeatureOutcome::Passed { files, commit, .. }) => {
                    known.files = files;
                    known.commit = Some(commit);
                }
                Some(FeatureOutcome::Blocked { .. }) => {}
                None => {
                    known.ended_early = true;
                    known.called_done = self.called_done(&run).await?;
                }
            }
            runs.insert(feature.clone(), known);
        }
        Ok(runs)
    }

    /// Reports to a project which features were terminated before they received that their last
    /// session called the work done.
    pub(crate) async fn report_finished_work(
        &self,
        engine: &Engine,
        project: &RunId,
    ) -> Result<(), StoreError> {
        let below = self.store.runs(&format!("{project}/")).await?;
        let ended = below.iter().filter(|(_, summary)| RunKind::of(summary) == RunKind::Feature);
        let latest = LatestRuns::of(&below);
        let mut finished = Vec::new();
        for (run, summary) in ended.filter(|(run, _)| latest.after(run).is_none()) {
            if self.is_terminated(engine, run, summary).await?
                && self.called_done(run.as_str()).await?
            {
                finished.extend(self.feature_of(run.as_str()).await?);
            }
        }
        if finished.is_empty() {
            // The list may be long, and is not needed.
            return Ok(());
        }
        let backlog = ProjectView::of(&self.store.published(project).await?).backlog;
        for begun in finished {
            let listed = backlog.iter().find(|feature| feature.id == begun.id);
            if listed
                .is_some_and(|it| !it.passes && !changes_the_work(&it.differing_fields(&begun)))
            {
                engine.signal(project, signal::CALLED_DONE, Payload::of(&begun.id)).await?;
            }
        }
        Ok(())
    }

    /// Whether a run was terminated; waits until an unread request is applied.
    async fn is_terminated(
        &self,
        engine: &Engine,
        run: &RunId,
        summary: &Summary,
    ) -> Result<bool, StoreError> {
        if summary.status.is_terminal() {
            return Ok(summary.status == Status::Cancelled);
        }
        let is_due = self.is_ending(run).await?;
        if is_due {
            engine.outcome(run).await?;
        }
        Ok(is_due)
    }

    /// Whether the last run of a feature was ended before it received that its last session called
    /// the work done.
    pub(crate) async fn has_finished_work(
        &self,
        project: &RunId,
        feature: &FeatureId,
    ) -> Result<bool, StoreError> {
        let below = self.store.runs(&format!("{project}/{feature}/")).await?;
        Ok(self.feature_runs(project, &below).await?.values().any(|runs| runs.called_done))
    }

    /// Whether the last session of a feature run ended and called the work done.
    async fn called_done(&self, run: &str) -> Result<bool, StoreError> {
        let below = self.store.runs(&format!("{run}/")).await?.into_iter();
        let sessions = below.filter(|(_, summary)| {
            summary.parent.as_ref().is_some_and(|parent| parent.as_str() == run)
        });
        let Some((last, _)) = sessions.max_by_key(|(_, summary)| summary.started_at) else {
            return Ok(false);
        };
        let report = self.output::<SessionReport>(last.as_str()).await?;
        Ok(report.is_some_and(|report| report.ending == SessionEnding::ClaimsDone))
    }

    /// The feature that a run began to work on.
    async fn feature_of(&self, run: &str) -> Result<Option<Box<Feature>>, StoreError> {
        let Ok(run) = RunId::new(run) else { return Ok(None) };
        let Some(summary) = self.store.summary(&run).await? else { return Ok(None) };
        let first = self.store.read(&run, summary.origin).await?.into_iter().next();
        let Some(EventKind::RunStarted { input, .. }) = first.map(|event| event.kind) else {
            return Ok(None);
        };
        Ok(input.read::<FeatureInput>().ok().map(|input| Box::new(input.feature)))
    }

    /// The output of a completed run.
    async fn output<T: DeserializeOwned>(&self, run: &str) -> Result<Option<T>, StoreError> {
        let Ok(run) = RunId::new(run) else { return Ok(None) };
        let summary = self.store.summary(&run).await?;
        let Some(summary) = summary.filter(|summary| summary.status == Status::Completed) else {
            return Ok(None);
        };
        let last = self.store.read(&run, summary.origin).await?.pop();
        Ok(match last.and_then(|event| event.kind.outcome()) {
            Some(Outcome::Completed(output)) => output.read().ok(),
            _ => None,
        })
    }
}
