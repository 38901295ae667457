//! Checking a claim: the tip of the target, where the gates of a feature that is said to pass are
//! run.

use serde::{Deserialize, Serialize};

use super::{ProjectRef, git_policy};

activity! {
    /// Determines the tip, and the integration work tree for its gates, which bring the tree to the commit. Nothing of a
    /// feature's own branch is used.
    CheckOutTip = "check_out_tip": TipInput => TipTree, git_policy()
}

/// Input of [`CheckOutTip`].
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TipInput {
    /// The project.
    pub project: ProjectRef,
    /// The branch that finished work goes to.
    pub target: String,
    /// The feature list, relative to the root.
    pub list_file: String,
    /// The integration work tree to use: the one that the turn came with.
    pub tree: u32,
}

/// Output of [`CheckOutTip`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TipTree {
    /// The tip.
    pub commit: String,
    /// The path of the integration work tree.
    pub worktree: String,
}
