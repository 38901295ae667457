//! Showing what happens in a batch.

use std::collections::BTreeMap;

use anyhow::Result;
use chrono::{DateTime, Utc};
use longhaul_workflows::projection::State;
use schemars::JsonSchema;
use serde::Serialize;

use crate::arguments::Shown;
use crate::command::run::Progress;
use crate::document;
use longhaul_server::status::{FeatureLine, StatusDocument};

/// Something in a batch is in another state.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::command) struct ProgressLine {
    /// When it was seen.
    at: DateTime<Utc>,
    /// The name of the project in the batch.
    project: String,
    #[serde(flatten)]
    change: Change,
}

/// What is in which state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
pub(super) enum Change {
    Project {
        /// `waiting`, `working`, `passed`, `blocked`, `suspended` or `refused`.
        state: String,
    },
    Feature {
        /// Its id.
        feature: String,
        /// Its state.
        status: State,
        /// Whether its checks passed on the target branch.
        passes: bool,
        /// What is being done.
        step: Option<String>,
        /// Why it is blocked, or needs a person.
        reason: Option<String>,
        /// Its last run.
        run: Option<String>,
    },
}

/// What was shown last.
pub(super) enum Changes {
    Text(Progress),
    /// What was said of projects and of their features, by name.
    Json(BTreeMap<(String, String), Change>),
    None,
}

impl Changes {
    pub(super) fn new(shown: Shown) -> Self {
        match shown {
            Shown::Text => Self::Text(Progress::new()),
            Shown::Jsonl => Self::Json(BTreeMap::new()),
            Shown::None => Self::None,
        }
    }

    pub(super) fn is_json(&self) -> bool {
        matches!(self, Self::Json(_))
    }

    /// Shows that a project is in another state.
    pub(super) fn project(&mut self, name: &str, state: &str) -> Result<()> {
        self.say(name, "", Change::Project { state: state.to_owned() })
    }

    /// Shows what changed in the features of a project.
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

    /// Writes a line for what is new.
    fn say(&mut self, project: &str, feature: &str, change: Change) -> Result<()> {
        let Self::Json(known) = self else { return Ok(()) };
        let key = (project.to_owned(), feature.to_owned());
        if known.get(&key) == Some(&change) {
            return Ok(());
        }
        known.insert(key, change.clone());
        document::print_line(ProgressLine { at: Utc::now(), project: project.to_owned(), change })
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
