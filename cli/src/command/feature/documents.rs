//! JSON documents of `longhaul feature`.

use longhaul_workflows::backlog::Feature;
use schemars::JsonSchema;
use serde::Serialize;

use longhaul_server::status::FeatureLine;

/// The features of a project.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::command) struct FeaturesDocument {
    /// The id of the project.
    pub(super) project: String,
    /// The error in its list or settings; the features are then the last known ones.
    pub(super) problem: Option<String>,
    /// The features in the order of the list.
    pub(super) features: Vec<FeatureLine>,
}

/// One feature.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::command) struct FeatureDocument<'a> {
    /// The id of the project.
    pub(super) project: &'a str,
    /// Its list entry.
    pub(super) entry: &'a Feature,
    /// Its state in the project.
    pub(super) state: Option<&'a FeatureLine>,
}

/// The features that are ready.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::command) struct NextDocument {
    /// The id of the project.
    pub(super) project: String,
    /// Their ids, the next one first.
    pub(super) workable: Vec<String>,
}
