//! What `longhaul feature` gives as JSON.

use longhaul_workflows::backlog::Feature;
use schemars::JsonSchema;
use serde::Serialize;

use longhaul_server::status::FeatureLine;

/// The features of a project.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::command) struct FeaturesDocument {
    /// The id of the project.
    pub(super) project: String,
    /// The problem with its list or settings; the features are then the last known ones.
    pub(super) problem: Option<String>,
    /// In the order of the list.
    pub(super) features: Vec<FeatureLine>,
}

/// One feature.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::command) struct FeatureDocument<'a> {
    /// The id of the project.
    pub(super) project: &'a str,
    /// What the list asks for.
    pub(super) asked: &'a Feature,
    /// Where it stands.
    pub(super) stands: Option<&'a FeatureLine>,
}

/// The features that can be worked on now.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::command) struct NextDocument {
    /// The id of the project.
    pub(super) project: String,
    /// Their ids, the next one first.
    pub(super) workable: Vec<String>,
}
