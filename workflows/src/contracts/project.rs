//! Reading a project: its settings and its feature list.

use std::time::Duration;

use longhaul_engine::{Delays, Policy};
use serde::{Deserialize, Serialize};

use crate::backlog::Feature;
use crate::settings::Settings;

/// A project: its id in the log, and its place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProjectRef {
    /// The id of the project and of its run.
    pub id: String,
    /// The root of the user's checkout when the run began: an absolute path. A machine that has
    /// registered another place for the id uses that one.
    pub root: String,
}

activity! {
    /// Reads `longhaul.toml` and the feature list from the user's checkout. Terminal if one of them
    /// is missing or invalid; the message lists all errors with their places.
    LoadBacklog = "load_backlog": LoadInput => LoadedBacklog, Policy {
        retry: Delays::List(vec![Duration::from_millis(200); 3]),
        start_to_close: Duration::from_mins(1),
        ..Policy::idempotent()
    }
}

/// Input of [`LoadBacklog`].
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LoadInput {
    /// The project.
    pub project: ProjectRef,
    /// The target branch, if already known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub target: String,
    /// Commits that landed on it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub landed: Vec<String>,
}

/// Output of [`LoadBacklog`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadedBacklog {
    /// The features, in the order of the file.
    pub features: Vec<Feature>,
    /// The settings.
    pub settings: Settings,
    /// The target branch: configured, or the one checked out.
    pub target: String,
    /// The feature list, relative to the root.
    pub list_file: String,
    /// Assumptions made while reading the list.
    pub notes: Vec<String>,
    /// Those of [`LoadInput::landed`] that are no longer in the target.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost: Vec<String>,
    /// The commit of the target, if `landed` was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tip: Option<String>,
}
