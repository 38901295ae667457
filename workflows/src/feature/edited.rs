//! Edits of the list and the settings that affect a feature in progress.

use longhaul_engine::{Payload, RunId};
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
}

impl Edited {
    /// The name of the signal.
    pub const SIGNAL: &'static str = "edited";
}

impl Work {
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
        }
    }
}
