//! Edits of the list and the settings that affect a feature in progress.

use longhaul_engine::{Context, ContextExt, Payload, RunId, Stop};
use serde::{Deserialize, Serialize};

use crate::backlog::{Check, Feature};
use crate::finding::Finding;

use super::Work;

/// The signal `edited`: the current version of the feature in the list. Only its project sends it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Edited {
    /// The feature.
    pub feature: Feature,
    /// The gates of the project.
    pub gates: Vec<Check>,
    /// Its baseline.
    pub baseline: Vec<Check>,
}

impl Edited {
    /// The name of the signal.
    pub const SIGNAL: &'static str = "edited";
    /// The name of the signal by which a run makes its project read the list. The project answers
    /// with the current version, edited or not.
    pub const REQUEST: &'static str = "edited_request";
}

impl Work {
    /// The version of the feature that this run knows.
    pub(super) fn version(&self) -> String {
        let settings = &self.input.settings;
        self.input.feature.version(&settings.gates, &settings.baseline)
    }

    /// Makes the project read the list, and waits for its answer; returns whether this run knew
    /// another version.
    ///
    /// The project, and not the run, reads the feature: it also reports who edited what, and
    /// applies overrides.
    pub(super) async fn request_edits(&mut self, context: &mut dyn Context) -> Result<bool, Stop> {
        let known = self.version();
        let project = self.project_run()?;
        context.signal(project.clone(), Edited::REQUEST, &self.id()).await?;
        let edited = self.await_signal(context, Edited::SIGNAL).await?;
        self.take_edit(Some(&project), &edited);
        Ok(self.version() != known)
    }

    /// The next gates and the next session use the current version of the feature.
    pub(super) fn take_edit(&mut self, from: Option<&RunId>, payload: &Payload) {
        let is_from_project =
            from.is_some_and(|from| self.project_run().is_ok_and(|project| project == *from));
        if is_from_project
            && let Ok(edited) = payload.read::<Edited>()
            && edited.feature.id == self.input.feature.id
        {
            if self.input.feature.checks != edited.feature.checks {
                self.progress
                    .findings
                    .retain(|finding| !matches!(finding, Finding::PassedOnBase { .. }));
            }
            self.input.feature = edited.feature;
            self.input.settings.gates = edited.gates;
            self.input.settings.baseline = edited.baseline;
        }
    }
}
