//! Checking a claim: the gates of a feature with a claimed pass run on the tip of the target.

use serde::{Deserialize, Serialize};

use super::{ProjectRef, git_policy};

activity! {
    /// Determines the tip, and the integration work tree in which the gates check it out. The
    /// feature's own branch is not used.
    CheckOutTip = "check_out_tip": TipInput => TipTree, git_policy()
}

/// Input of [`CheckOutTip`].
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TipInput {
    /// The project.
    pub project: ProjectRef,
    /// The target branch.
    pub target: String,
    /// The feature list, relative to the root.
    pub list_file: String,
    /// The integration work tree of the merge turn.
    pub tree: u32,
}

/// Output of [`CheckOutTip`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TipTree {
    /// The tip.
    pub commit: String,
}
