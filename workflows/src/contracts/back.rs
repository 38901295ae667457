//! Rolling a whole project back.

use std::collections::BTreeMap;

use longhaul_engine::RunId;
use serde::{Deserialize, Serialize};

use crate::backlog::FeatureId;

use super::{ProjectRef, git_policy};

activity! {
    /// Moves the target branch back to an earlier commit of its own, as a person requested. The old
    /// tip stays under `refs/longhaul/rolled-back/<at>`, work waiting on `longhaul/next` under
    /// `<at>-next`. Work trees based on undone commits are closed, and their commits kept as those
    /// of their runs. Terminal if the checkout has changes.
    RollBack = "roll_back": RollBackInput => RolledBack, git_policy()
}

/// Input of [`RollBack`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RollBackInput {
    /// The project.
    pub project: ProjectRef,
    /// The target branch.
    pub target: String,
    /// The commit to go back to.
    pub to: String,
    /// The feature list, relative to the root.
    pub list_file: String,
    /// The time as part of a ref name: equal for all attempts.
    pub at: String,
    /// Passed features, and the commits on which they passed.
    pub landed: BTreeMap<FeatureId, String>,
    /// The last runs of the other features, which may have work trees.
    pub open: BTreeMap<FeatureId, RunId>,
}

/// Output of [`RollBack`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RolledBack {
    /// The previous tip of the target.
    pub from: String,
    /// The ref that keeps it.
    pub kept: String,
    /// The features with undone commits.
    pub undone: Vec<FeatureId>,
}
