//! The work tree of a feature, and the way of its work to the target branch.
//!
//! The *tip* is where the next finished feature goes on top of: `longhaul/next` while it is ahead
//! of the target branch, else the target branch.

use longhaul_engine::{Effect, Policy};
use serde::{Deserialize, Serialize};

use crate::backlog::FeatureId;
use crate::settings::MergeStyle;

use super::{OutsideChange, ProjectRef, git_policy};

activity! {
    /// Takes a work tree on the feature's own branch `longhaul/<feature>`, new from the tip or as an earlier run left it.
    /// Uncommitted work found in it is first kept under `refs/longhaul/rescue/<run>/<key>`.
    OpenWorktree = "open_worktree": OpenInput => Worktree, git_policy()
}

/// Input of [`OpenWorktree`].
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct OpenInput {
    /// The project.
    pub project: ProjectRef,
    /// The branch that finished work goes to.
    pub target: String,
    /// The feature.
    pub feature: FeatureId,
}

/// Output of [`OpenWorktree`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Worktree {
    /// Its absolute path.
    pub path: String,
    /// Its branch.
    pub branch: String,
    /// The commit that it stands on.
    pub head: String,
    /// The ref that keeps uncommitted work which was found in it.
    pub rescued: Option<String>,
    /// Whether the branch has commits of its own, which are not in the tip.
    #[serde(default)]
    pub has_work: bool,
}

activity! {
    /// Brings the tip into a feature's branch, and its clean work tree to the result. A branch without commits of its own moves
    /// to the tip; any other gets a merge commit. A conflict changes nothing. Running it again gives the same commit.
    RefreshWorktree = "refresh_worktree": RefreshInput => Refreshed, git_policy()
}

/// Input of [`RefreshWorktree`].
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RefreshInput {
    /// The project.
    pub project: ProjectRef,
    /// The branch that finished work goes to.
    pub target: String,
    /// The feature.
    pub feature: FeatureId,
    /// Its work tree.
    pub worktree: String,
    /// The feature list, relative to the root.
    pub list_file: String,
}

/// Output of [`RefreshWorktree`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Refreshed {
    /// The commit that the branch stands on.
    pub commit: String,
    /// The tip.
    pub tip: String,
    /// The files in which the branch differs from the tip, relative to the root; after a conflict
    /// those that it changes.
    pub files: Vec<String>,
    /// Why the tip is not in the branch.
    pub conflict: Option<RefreshConflict>,
}

/// The tip does not merge into the branch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RefreshConflict {
    /// The files in conflict.
    pub files: Vec<String>,
    /// The output of git.
    pub output: String,
}

activity! {
    /// Ends a step: puts protected files back as the tip has them (or the last merge of it into the branch), then commits all
    /// that is there. The commit is the checkpoint of the step.
    Seal = "seal": SealInput => Sealed, git_policy()
}

/// Input of [`Seal`].
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SealInput {
    /// The project.
    pub project: ProjectRef,
    /// The branch that finished work goes to.
    pub target: String,
    /// The feature.
    pub feature: FeatureId,
    /// Its work tree.
    pub worktree: String,
    /// Globs of files that an agent may not change, relative to the root of the repository.
    pub protected: Vec<String>,
    /// The feature list, relative to the root.
    pub list_file: String,
    /// The step that is sealed: `session 2, done`. With the feature, the subject of the commit.
    pub step: String,
}

impl SealInput {
    /// The subject of the commit.
    pub fn subject(&self) -> String {
        format!("{}: {}", self.feature, self.step)
    }
}

/// Something that an agent changed and may not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tampering {
    /// The file, relative to the root.
    pub file: String,
    /// What was done to it, in a short text: `feature "x": passes was set to true`.
    pub what: String,
}

/// Output of [`Seal`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sealed {
    /// The commit that holds the work.
    pub commit: String,
    /// The files that the branch changes, relative to the root; empty: it holds no work.
    pub files: Vec<String>,
    /// What was put back.
    pub tampered: Vec<Tampering>,
    /// The ref that keeps what was there before it was put back.
    pub rescued: Option<String>,
    /// What the agent had appended to the progress file.
    pub notes: String,
    /// Why the progress file in the work tree was not read, if something else stands there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unread_notes: Option<String>,
    /// Branches that something else than Longhaul moved since the session began.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outside: Vec<OutsideChange>,
}

activity! {
    /// Makes the commit that would land: the tip with the feature's work merged in and the feature marked as passing in the
    /// list, checked out in an integration work tree of the project. Nothing refers to it yet.
    MergeCandidate = "merge_candidate": MergeInput => Merged, git_policy()
}

/// Input of [`MergeCandidate`].
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct MergeInput {
    /// The project.
    pub project: ProjectRef,
    /// The branch that finished work goes to.
    pub target: String,
    /// The feature.
    pub feature: FeatureId,
    /// The sealed commit to merge.
    pub commit: String,
    /// How.
    pub style: MergeStyle,
    /// Globs of files that are as the tip has them, whatever the merge makes of them, relative to
    /// the root.
    pub protected: Vec<String>,
    /// The feature list, relative to the root.
    pub list_file: String,
    /// The subject of the commit.
    pub subject: String,
    /// The body of the commit; may be empty.
    pub body: String,
    /// The time of the commit and of `last_tested`, RFC 3339: fixed, so that making it again gives
    /// the same commit.
    pub at: String,
    /// The integration work tree to use: the one that the turn came with.
    pub tree: u32,
}

/// Output of [`MergeCandidate`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "result", rename_all = "snake_case")]
pub enum Merged {
    /// It merges.
    Candidate {
        /// The commit that would land.
        commit: String,
        /// The tip that it stands on.
        tip: String,
        /// The integration work tree, at that commit.
        worktree: String,
        /// The files that it changes, relative to the root.
        files: Vec<String>,
        /// Protected files that the merge changed, and that were put back as the tip has them.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        put_back: Vec<String>,
        /// Branches that something else than Longhaul moved.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        outside: Vec<OutsideChange>,
    },
    /// It does not merge.
    Conflict {
        /// The tip that it conflicts with.
        tip: String,
        /// The files in conflict.
        files: Vec<String>,
        /// What git said.
        output: String,
    },
}

activity! {
    /// Moves the target branch forward to a commit whose gates passed. A checkout of the target that is clean follows; one
    /// with changes is left alone, and `longhaul/next` moves instead. The probe asks whether the commit is there already.
    Land = "land": LandInput => Landed, Policy { effect: Effect::Guarded, ..git_policy() }
}

/// Input of [`Land`].
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LandInput {
    /// The project.
    pub project: ProjectRef,
    /// The branch that finished work goes to.
    pub target: String,
    /// The tip that the commit stands on; terminal failure [`Land::STALE`] if the tip has moved
    /// since.
    pub tip: String,
    /// The commit to land.
    pub commit: String,
    /// The feature list, relative to the root.
    pub list_file: String,
}

/// Output of [`Land`] and [`Follow`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Landed {
    /// The commit that the target branch stands on now.
    pub target_commit: String,
    /// Why finished work waits on `longhaul/next` and is not on the target; `None`: nothing waits.
    pub waits_on_next: Option<String>,
    /// Branches that something else than Longhaul moved.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outside: Vec<OutsideChange>,
}

impl Land {
    /// The code of the failure that the target branch has moved: the work has to be merged again.
    pub const STALE: &'static str = "stale";
}

activity! {
    /// Moves the target branch to `longhaul/next` if work waits there and the user's checkout lets it.
    Follow = "follow": FollowInput => Landed, git_policy()
}

/// Input of [`Follow`].
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FollowInput {
    /// The project.
    pub project: ProjectRef,
    /// The branch that finished work goes to.
    pub target: String,
    /// The feature list, relative to the root.
    pub list_file: String,
}

activity! {
    /// Removes the work tree and the branch of a landed feature. The branch's tip stays under `refs/longhaul/features/<run>`,
    /// anything uncommitted under a rescue ref.
    CloseWorktree = "close_worktree": CloseInput => (), git_policy()
}

/// Input of [`CloseWorktree`].
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CloseInput {
    /// The project.
    pub project: ProjectRef,
    /// The feature.
    pub feature: FeatureId,
    /// Its work tree; empty: wherever the work tree of this feature is, if it has one.
    pub worktree: String,
}
