//! Progress of a batch.

use std::collections::BTreeMap;

use anyhow::Result;
use chrono::{DateTime, Utc};
use longhaul_workflows::projection::{ProjectState, State};
use schemars::JsonSchema;
use serde::Serialize;

use crate::arguments::Shown;
use crate::command::run::Progress;
use crate::document;
use longhaul_server::Client;
use longhaul_server::status::{FeatureLine, StatusDocument};

/// A state change in a batch.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::command) struct ProgressLine {
    /// The time of the observation.
    at: DateTime<Utc>,
    /// The name of the project in the batch.
    project: String,
    #[serde(flatten)]
    change: Change,
}

/// The subject of a state change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
pub(super) enum Change {
    Project {
        /// Its state.
        state: ProjectState,
    },
    Feature {
        /// Its id.
        feature: String,
        /// Its state.
        status: State,
        /// Whether its checks passed on the target branch.
        passes: bool,
        /// The current step.
        step: Option<String>,
        /// Why it is blocked, or needs a person.
        reason: Option<String>,
        /// Its last run.
        run: Option<String>,
    },
}

/// The last shown states.
pub(super) enum Changes {
    Text(Progress),
    /// The last shown line of each project and feature.
    Json(BTreeMap<(String, String), Change>),
    None,
}

impl Changes {
    pub(super) fn new(shown: Shown, projects: usize) -> Self {
        match shown {
            Shown::Text => Self::Text(Progress::new(projects)),
            Shown::Jsonl => Self::Json(BTreeMap::new()),
            Shown::None => Self::None,
        }
    }

    pub(super) fn is_json(&self) -> bool {
        matches!(self, Self::Json(_))
    }

    /// Shows the new state of a project.
    pub(super) fn project(&mut self, name: &str, state: ProjectState) -> Result<()> {
        self.say(name, "", Change::Project { state })
    }

    /// Shows the changed features of a project.
    pub(super) fn features(&mut self, name: &str, document: &StatusDocument) -> Result<()> {
        if let Self::Text(progress) = self {
            progress.show(document);
        }
        let begun = document
            .features
            .iter()
            .filter(|feature| feature.run.is_some() || feature.reason.is_some());
        for feature in begun {
            self.say(name, &feature.id, Change::of(feature))?;
        }
        Ok(())
    }

    /// Prints a change.
    fn say(&mut self, project: &str, feature: &str, change: Change) -> Result<()> {
        let Self::Json(known) = self else { return Ok(()) };
        let key = (project.to_owned(), feature.to_owned());
        if known.get(&key) == Some(&change) {
            return Ok(());
        }
        known.insert(key, change.clone());
        document::print_line(ProgressLine { at: Utc::now(), project: project.to_owned(), change })
    }

    /// Draws the live display, if it is due.
    pub(super) async fn tick(&mut self, client: &Client) {
        if let Self::Text(progress) = self {
            progress.tick(client).await;
        }
    }

    pub(super) fn finish(&mut self) {
        if let Self::Text(progress) = self {
            progress.finish();
        }
    }
}

impl Change {
    fn of(feature: &FeatureLine) -> Self {
        Self::Feature {
            feature: feature.id.clone(),
            status: feature.status,
            passes: feature.passes,
            step: feature.step.clone(),
            reason: feature.reason.clone(),
            run: feature.run.as_ref().map(ToString::to_string),
        }
    }
}
