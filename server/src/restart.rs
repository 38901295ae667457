//! Restarts projects whose run failed or was terminated.

use std::collections::BTreeMap;

use longhaul_engine::{
    Engine, MessageBody, NewRun, Outcome, Payload, RequestedBy, RunId, Status, StoreError,
};
use longhaul_workflows::backlog::FeatureId;
use longhaul_workflows::contracts::{ProjectRef, SessionEnding, SessionReport};
use longhaul_workflows::feature::{FeatureOutcome, FeatureWorkflow};
use longhaul_workflows::project::{FeatureRuns, ProjectInput};
use longhaul_workflows::session::SessionWorkflow;
use serde::de::DeserializeOwned;

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
        let prefix = format!("{}/", new.run);
        let below = self.store.runs(&prefix).await?;
        for (run, _) in below.iter().filter(|(_, summary)| !summary.status.is_terminal()) {
            let request =
                RequestedBy { by: "longhaul".into(), why: "its project is begun again".into() };
            engine.deliver(run, MessageBody::Terminate(request)).await?;
            engine.outcome(run).await?;
        }
        let published = self.store.published(&new.run).await?;
        let runs = self.feature_runs(&new.run).await?;
        let input = Payload::of(&ProjectInput::recovered(project.clone(), &published, runs));
        engine.restart(NewRun { input, ..new }).await
    }

    /// The last run of each feature of a project.
    async fn feature_runs(
        &self,
        project: &RunId,
    ) -> Result<BTreeMap<FeatureId, FeatureRuns>, StoreError> {
        let prefix = format!("{project}/");
        let (mut last, mut sessions) = (BTreeMap::new(), BTreeMap::new());
        for (run, summary) in self.store.runs(&prefix).await? {
            let parts = run.as_str().strip_prefix(&prefix).and_then(|rest| rest.rsplit_once('/'));
            match (summary.workflow.as_str(), parts, &summary.parent) {
                (FeatureWorkflow::NAME, Some((feature, number)), _) => {
                    let (Ok(id), Ok(number)) = (FeatureId::new(feature), number.parse::<u32>())
                    else {
                        continue;
                    };
                    let (known, of_last) = last.entry(id).or_insert((0, None));
                    if number > *known {
                        (*known, *of_last) = (number, Some(run));
                    }
                }
                (SessionWorkflow::NAME, _, Some(parent)) => {
                    let begun = summary.started_at;
                    let newest = sessions.entry(parent.clone()).or_insert((begun, run.clone()));
                    if begun >= newest.0 {
                        *newest = (begun, run);
                    }
                }
                _ => {}
            }
        }
        let mut runs = BTreeMap::new();
        for (id, (number, of_last)) in last {
            let Some(run) = of_last else { continue };
            let files = match self.output(&run).await? {
                Some(FeatureOutcome::Passed { files, .. }) => files,
                _ => Vec::new(),
            };
            let report: Option<SessionReport> = match sessions.get(&run) {
                Some((_, session)) => self.output(session).await?,
                None => None,
            };
            let called_done =
                report.is_some_and(|report| report.ending == SessionEnding::ClaimsDone);
            runs.insert(id, FeatureRuns { last: number, files, called_done });
        }
        Ok(runs)
    }

    /// The output of a completed run.
    async fn output<T: DeserializeOwned>(&self, run: &RunId) -> Result<Option<T>, StoreError> {
        let summary = self.store.summary(run).await?;
        let Some(summary) = summary.filter(|summary| summary.status == Status::Completed) else {
            return Ok(None);
        };
        let last = self.store.read(run, summary.origin).await?.pop();
        Ok(match last.and_then(|event| event.kind.outcome()) {
            Some(Outcome::Completed(output)) => output.read().ok(),
            _ => None,
        })
    }
}
