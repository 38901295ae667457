//! The common first fields of documents about runs and features.

use longhaul_engine::RunId;
use longhaul_workflows::projection::State;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A project, a feature or a run, and its state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Header {
    /// The id of the project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// The id of the feature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feature: Option<String>,
    /// The id of the run; for a feature its last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub run: Option<RunId>,
    /// The state.
    pub status: State,
}

impl Header {
    /// The id: of the run, else of the feature or the project.
    pub fn id(&self) -> &str {
        let run = self.run.as_ref().map(RunId::as_str);
        run.or(self.feature.as_deref()).or(self.project.as_deref()).unwrap_or_default()
    }
}
