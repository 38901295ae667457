//! The kinds of runs: one for each workflow.

use std::fmt;

use longhaul_engine::Summary;
use longhaul_workflows::batch::BatchWorkflow;
use longhaul_workflows::feature::FeatureWorkflow;
use longhaul_workflows::project::ProjectWorkflow;
use longhaul_workflows::session::SessionWorkflow;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The kind of a run: its workflow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunKind {
    /// The run of a project.
    Project,
    /// A run of a feature.
    Feature,
    /// A session of an agent.
    Session,
    /// A batch of projects.
    Batch,
    /// A workflow that this version does not know, by its name.
    #[serde(untagged)]
    Other(String),
}

impl RunKind {
    /// The names of the known kinds.
    pub const NAMES: [&str; 4] =
        [ProjectWorkflow::NAME, FeatureWorkflow::NAME, SessionWorkflow::NAME, BatchWorkflow::NAME];

    /// The kind of the runs of a workflow.
    pub fn named(workflow: &str) -> Self {
        match workflow {
            ProjectWorkflow::NAME => Self::Project,
            FeatureWorkflow::NAME => Self::Feature,
            SessionWorkflow::NAME => Self::Session,
            BatchWorkflow::NAME => Self::Batch,
            other => Self::Other(other.to_owned()),
        }
    }

    pub(crate) fn of(summary: &Summary) -> Self {
        Self::named(&summary.workflow)
    }

    /// The name of the workflow.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Project => ProjectWorkflow::NAME,
            Self::Feature => FeatureWorkflow::NAME,
            Self::Session => SessionWorkflow::NAME,
            Self::Batch => BatchWorkflow::NAME,
            Self::Other(workflow) => workflow,
        }
    }
}

impl fmt::Display for RunKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_its_name_in_json() {
        for name in RunKind::NAMES.into_iter().chain(["of-a-later-version"]) {
            let json = format!("\"{name}\"");
            let kind: RunKind = serde_json::from_str(&json).unwrap();
            assert_eq!(kind, RunKind::named(name));
            assert_eq!(serde_json::to_string(&kind).unwrap(), json);
        }
    }
}
