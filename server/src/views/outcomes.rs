//! How runs are shown to stand: as the engine says, and of a feature that is over what its run came to.

use std::collections::{BTreeMap, BTreeSet};

use longhaul_engine::{EventKind, RunId, RunReader, StoreError, Summary};
use longhaul_workflows::feature::{FeatureOutcome, FeatureWorkflow};

use super::belongs;
use crate::overlay::said;

/// What the runs of features came to. A run keeps what it came to, whatever becomes of its feature later.
#[derive(Default)]
pub struct Outcomes(BTreeMap<String, BTreeSet<RunId>>);

impl Outcomes {
    /// How a run stands, in one of the words of [`super::STATES`].
    pub async fn state(
        &mut self,
        store: &dyn RunReader,
        run: &RunId,
        summary: &Summary,
    ) -> Result<&'static str, StoreError> {
        let state = summary.status.name();
        if state != "completed" || summary.workflow != FeatureWorkflow::NAME {
            return Ok(state);
        }
        // Most have passed, and all of those of a project are found with one look at it.
        if let (Some(project), _) = belongs(run, summary)
            && self.passed(store, project).await?.contains(run)
        {
            return Ok("passed");
        }
        let events = store.read(run, summary.origin).await?;
        let outcome = match events.last().map(|event| &event.kind) {
            Some(EventKind::RunCompleted { output }) => output.read::<FeatureOutcome>().ok(),
            _ => None,
        };
        Ok(match outcome {
            Some(FeatureOutcome::Passed { .. }) => "passed",
            Some(FeatureOutcome::Blocked { .. }) => "blocked",
            None => state,
        })
    }

    /// The runs of a project by which its features pass.
    async fn passed(&mut self, store: &dyn RunReader, project: String) -> Result<&BTreeSet<RunId>, StoreError> {
        if !self.0.contains_key(&project) {
            let published = match RunId::new(project.clone()) {
                Ok(id) => store.published(&id).await?,
                Err(_) => BTreeMap::new(),
            };
            let passing = said(&published).into_values().filter(|view| view.passes);
            self.0.insert(project.clone(), passing.filter_map(|view| view.run).collect());
        }
        Ok(self.0.entry(project).or_default())
    }
}
