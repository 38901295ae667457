//! Restarts projects whose run failed or was terminated.

use std::collections::BTreeMap;

use longhaul_engine::{
    Engine, MessageBody, NewRun, Outcome, Payload, RequestedBy, RunId, Status, StoreError,
};
use longhaul_workflows::backlog::FeatureId;
use longhaul_workflows::contracts::ProjectRef;
use longhaul_workflows::feature::FeatureOutcome;
use longhaul_workflows::project::{FeatureView, ProjectInput};
use longhaul_workflows::projection::ProjectView;

use crate::head::RunHead;
use crate::service::Service;

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
        let runs = self.store.runs(new.run.as_str()).await?.into_iter();
        let below = runs.filter(|(run, _)| *run != new.run && run.is_within(new.run.as_str()));
        for (run, _) in below.filter(|(_, summary)| !summary.status.is_terminal()) {
            let request =
                RequestedBy { by: "longhaul".into(), why: "its project is begun again".into() };
            engine.deliver(&run, MessageBody::Terminate(request)).await?;
            engine.outcome(&run).await?;
        }
        let published = self.store.published(&new.run).await?;
        let files = self.changed_files(&published).await?;
        let input = Payload::of(&ProjectInput::recovered(project.clone(), &published, files));
        engine.restart(NewRun { input, ..new }).await
    }

    /// The changed files of passed features, from the outcomes of their runs.
    async fn changed_files(
        &self,
        published: &BTreeMap<String, Payload>,
    ) -> Result<BTreeMap<FeatureId, Vec<String>>, StoreError> {
        let mut changed = BTreeMap::new();
        for (id, view) in ProjectView::of(published).features {
            let FeatureView { passes: true, run: Some(run), .. } = view else { continue };
            let Some(summary) = self
                .store
                .summary(&run)
                .await?
                .filter(|summary| summary.status == Status::Completed)
            else {
                continue;
            };
            let last = self
                .store
                .read(&run, summary.origin)
                .await?
                .pop()
                .and_then(|event| event.kind.outcome());
            let outcome = match last {
                Some(Outcome::Completed(output)) => output.read::<FeatureOutcome>().ok(),
                _ => None,
            };
            if let Some(FeatureOutcome::Passed { files, .. }) = outcome {
                changed.insert(id, files);
            }
        }
        Ok(changed)
    }
}
