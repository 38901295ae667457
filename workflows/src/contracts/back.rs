//! Taking a whole project back.

use std::collections::BTreeMap;

use longhaul_engine::RunId;
use serde::{Deserialize, Serialize};

use crate::backlog::FeatureId;

use super::{ProjectRef, git_policy};

activity! {
    /// Moves the target branch back to an earlier commit of its own, as a person asked. The old tip stays under
    /// `refs/longhaul/rolled-back/<at>`, what waits on `longhaul/next` under `<at>-next`; work trees that stand on what is
    /// undone are closed, and their commits kept as those of their runs. Terminal if the checkout has changes.
    RollBack = "roll_back": RollBackInput => WentBack, git_policy()
}

/// Input of [`RollBack`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RollBackInput {
    /// The project.
    pub project: ProjectRef,
    /// The branch that finished work goes to.
    pub target: String,
    /// The commit to go back to.
    pub to: String,
    /// The feature list, relative to the root.
    pub list_file: String,
    /// The time, as a part of a ref name: the same in each attempt.
    pub at: String,
    /// Features that passed, and the commits on which they did.
    pub landed: BTreeMap<FeatureId, String>,
    /// The last runs of the other features: they may have work trees.
    pub open: BTreeMap<FeatureId, RunId>,
}

/// Output of [`RollBack`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WentBack {
    /// The commit that the target stood on.
    pub from: String,
    /// The ref that keeps it.
    pub kept: String,
    /// The features whose commits are undone.
    pub undone: Vec<FeatureId>,
}
