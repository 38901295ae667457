//! The dependency graph of the features of a project.

use std::collections::HashMap;

use longhaul_engine::{RunId, StoreError};
use longhaul_workflows::backlog::{Cycle, Feature, cycles};
use longhaul_workflows::projection::{ProjectView, State};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::View;
use crate::status;

/// The features, in the order of the list.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GraphDocument {
    /// The id of the project.
    pub project: String,
    /// The features, in the order of the list.
    pub features: Vec<FeatureNode>,
    /// The dependency cycles, the shortest first; a list with one is refused.
    pub cycles: Vec<Cycle>,
}

/// A feature.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FeatureNode {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its state.
    pub status: State,
    /// The ids of its dependencies.
    pub depends_on: Vec<String>,
}

impl GraphDocument {
    /// The graph of a project.
    pub fn of(project: &RunId, view: &ProjectView) -> Self {
        let node = |feature: &Feature| FeatureNode {
            id: feature.id.to_string(),
            name: feature.name.clone(),
            status: view.state_of(feature),
            depends_on: feature.depends_on.iter().map(ToString::to_string).collect(),
        };
        Self {
            project: project.to_string(),
            features: view.backlog.iter().map(node).collect(),
            cycles: cycles(&view.backlog),
        }
    }
}

impl View<'_> {
    pub(super) async fn graph(
        &self,
        project: &RunId,
        list: Option<Vec<Feature>>,
    ) -> Result<GraphDocument, StoreError> {
        if self.store.summary(project).await?.is_none() {
            return Err(StoreError::UnknownRun(project.clone()));
        }
        let view = ProjectView::of(&self.store.published(project).await?);
        let view = match list {
            Some(list) => view.with_list(list),
            None => view,
        };
        let mut document = GraphDocument::of(project, &view);
        // A feature in progress shows the state of its run.
        let lines = status::brief(self.store, project, &self.owner).await?.features;
        let states: HashMap<String, State> =
            lines.into_iter().map(|line| (line.id, line.status)).collect();
        for node in &mut document.features {
            node.status = states.get(&node.id).copied().unwrap_or(node.status);
        }
        Ok(document)
    }
}
