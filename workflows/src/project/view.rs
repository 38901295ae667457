//! The published values of a project, read by `status`, the files for people and the progress
//! display.

use longhaul_engine::RequestedBy;
use longhaul_engine::RunId;
use serde::{Deserialize, Serialize};

use crate::backlog::{BlockCause, Feature, FeatureId, FeatureStatus};
use crate::contracts::RolledBack;
use crate::finding::Findings;

use super::breaker::SessionsPaused;
use super::wait_reason::WaitReason;

/// Published under [`ProjectSummary::KEY`]: the state of the project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProjectSummary {
    /// The root of the user's checkout.
    pub root: String,
    /// The target branch.
    pub target: String,
    /// The feature list, relative to the root.
    pub list_file: String,
    /// Whether it is active.
    pub phase: Phase,
    /// The requester and the reason of a halt.
    pub halted: Option<longhaul_engine::RequestedBy>,
    /// The id of the last completed sync.
    pub synced: String,
    /// The error in the list or the settings; the previous ones stay in force.
    pub problem: Option<String>,
    /// Why finished work waits on `longhaul/next`.
    pub waits_on_next: Option<String>,
    /// Why no session begins: an outage of an agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<SessionsPaused>,
    /// Why no further session is paid: the budget of the project is spent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over_budget: Option<String>,
    /// The features that merge: one, and those that are held.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub merging: Vec<FeatureId>,
    /// The features that wait to merge, the next one first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub merge_queue: Vec<FeatureId>,
    /// The most features in progress at once.
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

/// Whether a project is active.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Work is in progress or about to begin.
    Working,
    /// Nothing more can be done: all features pass, or the rest waits for a person.
    Idle,
    /// Halted on request.
    Halted,
}

/// Published under [`BacklogView::KEY`]: the features, in the order of the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BacklogView {
    /// The features of the list.
    pub features: Vec<Feature>,
}

/// Published under [`FeatureView::key`], once a feature is not simply pending.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FeatureView {
    /// Its state.
    pub status: FeatureStatus,
    /// Whether its gates have passed: as run by Longhaul, never as claimed by an agent or a list.
    pub passes: bool,
    /// Its last run.
    pub run: Option<RunId>,
    /// The sessions of its finished runs.
    pub sessions: u32,
    /// The cause for which it is blocked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<BlockCause>,
    /// Why it is blocked, for people.
    pub reason: Option<String>,
    /// Why a feature in progress waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits: Option<WaitReason>,
    /// The commit on which it passed.
    pub commit: Option<String>,
    /// Whether an agent called its work done, but the work has not landed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub called_done: bool,
    /// Whether it is claimed to pass; its gates have not run on the target.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub claimed: bool,
    /// The dependency that was invalidated since this feature passed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub invalidated: Option<FeatureId>,
    /// Findings about its last run.
    #[serde(default, skip_serializing_if = "Findings::is_empty")]
    pub findings: Findings,
}

impl ProjectSummary {
    /// The key under which it is published.
    pub const KEY: &'static str = "project";
}

impl BacklogView {
    /// The key under which it is published.
    pub const KEY: &'static str = "backlog";
}

impl FeatureView {
    /// The common key prefix of all features.
    pub const PREFIX: &'static str = "feature/";

    /// Whether a person cancelled its last run.
    pub(crate) fn was_cancelled(&self) -> bool {
        self.cause == Some(BlockCause::Cancelled)
    }

    /// Whether it is blocked as its last run ended.
    pub fn is_blocked_by_run(&self) -> bool {
        self.was_cancelled() || self.cause == Some(BlockCause::Run)
    }

    /// The key of a feature.
    pub fn key(id: &FeatureId) -> String {
        format!("{}{id}", Self::PREFIX)
    }
}

/// The signal `rollback`: return to a commit as soon as no feature is in progress. The project
/// stays halted after it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rollback {
    /// The id of the request, repeated in the result.
    pub id: String,
    /// The target commit.
    pub to: String,
    /// The requester and the reason.
    pub request: RequestedBy,
}

/// Published under [`RollbackView::KEY`]: the result of the last rollback.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RollbackView {
    /// The request.
    pub rollback: Rollback,
    /// The output of the rollback, if it succeeded.
    pub done: Option<RolledBack>,
    /// The reason of a refusal.
    pub problem: Option<String>,
    /// The last sync before it.
    #[serde(default)]
    pub synced: String,
}

impl Rollback {
    /// The name of the signal.
    pub const SIGNAL: &'static str = "rollback";
}

impl RollbackView {
    /// The key under which it is published.
    pub const KEY: &'static str = "rollback";
}
