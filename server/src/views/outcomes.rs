//! The states of runs: from the engine, and for closed feature runs their outcomes.

use std::collections::{BTreeMap, BTreeSet};

use longhaul_engine::{EventKind, RunId, RunReader, Status, StoreError, Summary};
use longhaul_workflows::feature::{FeatureOutcome, FeatureWorkflow};
use longhaul_workflows::projection::{ProjectView, State};

use super::project_and_feature;

/// The runs with a passed outcome, by project. The outcome of a run never changes, even if its
/// feature is reset later.
#[derive(Default)]
pub struct Outcomes(BTreeMap<String, BTreeSet<RunId>>);

impl Outcomes {
    /// The state of a run.
    pub async fn state(
        &mut self,
        store: &dyn RunReader,
        run: &RunId,
        summary: &Summary,
    ) -> Result<State, StoreError> {
        if summary.status != Status::Completed || summary.workflow != FeatureWorkflow::NAME {
            return Ok(State::from(&summary.status));
        }
        // Most runs have passed, and one read of the project returns all of them.
        if let (Some(project), _) = project_and_feature(run, summary)
            && self.passed(store, project).await?.contains(run)
        {
            return Ok(State::Passed);
        }
        let last = store.read(run, summary.origin).await?.pop().map(|event| event.kind);
        let is_blocked = match last {
            Some(EventKind::RunCompleted { output }) => {
                matches!(output.read(), Ok(FeatureOutcome::Blocked { .. }))
            }
            _ => false,
        };
        Ok(if is_blocked { State::Blocked } else { State::Passed })
    }

    async fn passed(
        &mut self,
        store: &dyn RunReader,
        project: String,
    ) -> Result<&BTreeSet<RunId>, StoreError> {
        if !self.0.contains_key(&project) {
            let view = match RunId::new(project.clone()) {
                Ok(id) => ProjectView::of(&store.published(&id).await?),
                Err(_) => ProjectView::default(),
            };
            self.0.insert(project.clone(), view.passed_runs().cloned().collect());
        }
        Ok(self.0.entry(project).or_default())
    }
}
