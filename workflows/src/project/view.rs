//! What a project publishes: the shapes that `status`, the files for people and the progress
//! display read.

use longhaul_engine::RunId;
use serde::{Deserialize, Serialize};

use crate::backlog::{Feature, FeatureId, FeatureStatus};
use crate::finding::Findings;

use super::breaker::SessionsPaused;

/// Published under [`ProjectSummary::KEY`]: where the project stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProjectSummary {
    /// The top of the user's checkout.
    pub root: String,
    /// The branch that finished work goes to.
    pub target: String,
    /// The feature list, relative to the root.
    pub list_file: String,
    /// Whether it works.
    pub phase: Phase,
    /// Who halted it, and why, when it is halted.
    pub halted: Option<longhaul_engine::RequestedBy>,
    /// The id of the last sync that was followed.
    pub synced: String,
    /// What is wrong with the list or the settings; the ones before are in force.
    pub problem: Option<String>,
    /// Why finished work waits on `longhaul/next`.
    pub waits_on_next: Option<String>,
    /// Why no session begins: an agent is out of order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<SessionsPaused>,
    /// The features that merge: one, and those that do not go on by themselves.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub merging: Vec<FeatureId>,
    /// The features that wait to merge, the next one first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub merge_queue: Vec<FeatureId>,
    /// How many features may be worked on at once.
    pub parallel: usize,
    /// Features in all.
    pub features: usize,
    /// Features that pass.
    pub passed: usize,
    /// Features being worked on.
    pub in_progress: usize,
    /// Features that need a person.
    pub blocked: usize,
}

/// Whether a project works.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Something is being done, or will be at once.
    Working,
    /// Nothing more can be done: all pass, or the rest needs a person.
    Idle,
    /// Somebody halted it.
    Halted,
}

/// Published under [`BacklogView::KEY`]: the features, in the order of the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BacklogView {
    /// The features as the list has them.
    pub features: Vec<Feature>,
}

/// Published under [`FeatureView::key`], once a feature is not simply pending.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FeatureView {
    /// How far it is.
    pub status: FeatureStatus,
    /// Whether its gates have passed: by our own hand, never by the word of an agent or a list.
    pub passes: bool,
    /// Its last run.
    pub run: Option<RunId>,
    /// Sessions of the runs that are over.
    pub sessions: u32,
    /// Why it is blocked.
    pub reason: Option<String>,
    /// Why a feature in progress has to wait, in a sentence without its subject.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits: Option<String>,
    /// The commit that passed.
    pub commit: Option<String>,
    /// Whether an agent called its work done, and that has not landed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub called_done: bool,
    /// The feature that it depends on and that was taken back since it passed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub invalidated: Option<FeatureId>,
    /// What a person should know of its last run.
    #[serde(default, skip_serializing_if = "Findings::is_empty")]
    pub findings: Findings,
}

impl ProjectSummary {
    /// The key that it is published under.
    pub const KEY: &'static str = "project";
}

impl BacklogView {
    /// The key that it is published under.
    pub const KEY: &'static str = "backlog";
}

impl FeatureView {
    /// What the keys of all features begin with.
    pub const PREFIX: &'static str = "feature/";

    /// The key of a feature.
    pub fn key(id: &FeatureId) -> String {
        format!("{}{id}", Self::PREFIX)
    }
}
