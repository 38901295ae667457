//! The features of a project and what they need.

use std::collections::{BTreeSet, HashMap};

use longhaul_engine::{RunId, StoreError};
use longhaul_workflows::backlog::{Feature, FeatureStatus};
use longhaul_workflows::project::{BacklogView, FeatureView};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{View, published};
use crate::overlay::Features;

/// The features, in the order of the list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GraphDocument {
    /// The id of the project.
    pub project: String,
    /// The features, in the order of the list.
    pub features: Vec<Node>,
}

/// A feature.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Node {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its state.
    pub state: State,
    /// The ids of the features that it needs.
    pub depends_on: Vec<String>,
}

/// How far a feature is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Its checks passed on the target branch.
    Passes,
    /// It is worked on.
    InProgress,
    /// It can be worked on.
    Pending,
    /// A dependency does not pass yet.
    Waiting,
    /// It was given up.
    Blocked,
}

impl State {
    /// For people.
    pub fn words(self) -> &'static str {
        match self {
            Self::Passes => "passes",
            Self::InProgress => "in progress",
            Self::Pending => "pending",
            Self::Waiting => "waiting",
            Self::Blocked => "blocked",
        }
    }
}

impl View<'_> {
    pub(super) async fn graph(&self, project: &RunId) -> Result<GraphDocument, StoreError> {
        if self.store.summary(project).await?.is_none() {
            return Err(StoreError::UnknownRun(project.clone()));
        }
        let Features { published: values, views, .. } = Features::of(self.store, project).await?;
        let listed = published::<BacklogView>(&values, BacklogView::KEY).map(|backlog| backlog.features);
        let mut graph = of_list(project, &listed.unwrap_or_default());
        for node in &mut graph.features {
            if let Some(view) = views.get(&node.id) {
                node.state = state(view);
            }
        }
        graph.settle();
        Ok(graph)
    }
}

/// The features of a list that no log knows.
pub fn of_list(project: &RunId, features: &[Feature]) -> GraphDocument {
    let node = |feature: &Feature| Node {
        id: feature.id.to_string(),
        name: feature.name.clone(),
        state: if feature.status == FeatureStatus::Blocked && !feature.passes {
            State::Blocked
        } else {
            State::Pending
        },
        depends_on: feature.depends_on.iter().map(ToString::to_string).collect(),
    };
    let features = features.iter().map(node).collect();
    let mut graph = GraphDocument { project: project.to_string(), features };
    graph.settle();
    graph
}

impl GraphDocument {
    /// The same states for the features of a list that was edited since.
    #[must_use]
    pub fn with_list(&self, project: &RunId, features: &[Feature]) -> Self {
        let mut edited = of_list(project, features);
        let known: HashMap<&str, State> = self.features.iter().map(|node| (node.id.as_str(), node.state)).collect();
        for node in &mut edited.features {
            if let Some(state) = known.get(node.id.as_str()) {
                node.state = *state;
            }
        }
        edited.settle();
        edited
    }

    /// Tells the features that can be worked on from those that wait.
    fn settle(&mut self) {
        let passing = self.features.iter().filter(|node| node.state == State::Passes);
        let passing: BTreeSet<String> = passing.map(|node| node.id.clone()).collect();
        for node in &mut self.features {
            if matches!(node.state, State::Pending | State::Waiting) {
                let waits = node.depends_on.iter().any(|id| !passing.contains(id));
                node.state = if waits { State::Waiting } else { State::Pending };
            }
        }
    }
}

fn state(view: &FeatureView) -> State {
    match view.status {
        _ if view.passes => State::Passes,
        FeatureStatus::InProgress => State::InProgress,
        FeatureStatus::Blocked => State::Blocked,
        FeatureStatus::Pending | FeatureStatus::Completed => State::Pending,
    }
}
