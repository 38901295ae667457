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
    /// What is wrong with its list or settings, so that these are the features as they last were.
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
    #[schemars(with = "Asked")]
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

/// What the list asks for.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "the shape of `Feature`, for the schema alone")]
struct Asked {
    /// Its id in the list.
    id: String,
    /// Its name.
    name: String,
    /// What is to be built; may be empty.
    description: String,
    /// The kind of work, in the list's own words.
    category: Option<String>,
    /// The higher, the sooner.
    priority: i64,
    /// What must hold when it is done, for an agent to read.
    acceptance_criteria: Vec<String>,
    /// The features that must have passed before it is begun.
    depends_on: Vec<String>,
    /// The commands that decide whether it is done.
    checks: Vec<Check>,
    /// What the list claims: `pending`, `in_progress`, `completed` or `blocked`.
    status: String,
    /// What the list claims about its checks.
    passes: bool,
    /// When the list claims that it was last tested, as written there.
    last_tested: Option<String>,
    /// Whether a person must agree before it is merged.
    approval: bool,
}

/// A command that decides whether a feature is done.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "the shape of `Check`, for the schema alone")]
struct Check {
    /// Its name.
    name: String,
    /// The command, for `sh -c`.
    run: String,
    /// After how many seconds it is given up; else as the settings say.
    #[schemars(default, skip_serializing_if = "Option::is_none")]
    timeout_seconds: Option<u64>,
    /// Whether it is held out: an agent learns only whether it passes, and the message.
    #[schemars(default, skip_serializing_if = "std::ops::Not::not")]
    hidden: bool,
    /// What an agent is told when it fails and is held out.
    #[schemars(default, skip_serializing_if = "Option::is_none")]
    message: Option<String>,
}
