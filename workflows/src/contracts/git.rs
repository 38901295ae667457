//! The work tree of a feature, and the steps that bring its work to the target branch.
//!
//! The *tip* is the base of the next finished feature: `longhaul/next` while it is ahead of the
//! target branch, else the target branch.

use std::fmt;

use longhaul_engine::{Effect, Policy};
use serde::{Deserialize, Serialize};

use crate::backlog::FeatureId;
use crate::settings::MergeStyle;

use super::{OutsideChange, ProjectRef, git_policy};

activity! {
    /// Opens a work tree on the feature's branch `longhaul/<feature>`, new from the tip or as an
    /// earlier run left it. Uncommitted work in it is first kept under
    /// `refs/longhaul/rescue/<run>/<key>`.
    OpenWorktree = "open_worktree": OpenInput => Worktree, Policy {
        // A tree is opened shortly before an agent can work in it.
        pool: Some("trees".into()),
        ..git_policy()
    }
}

/// Input of [`OpenWorktree`].
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct OpenInput {
    /// The project.
    pub project: ProjectRef,
    /// The target branch.
    pub target: String,
    /// The feature.
    pub feature: FeatureId,
    /// Whether the last session called its work done: its uncommitted files belong to the work.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub called_done: bool,
    /// Whether an earlier run may have landed the feature: it ended before its outcome was known.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub may_have_landed: bool,
}

/// The work tree in which a step runs.
///
/// Payloads name a tree; only the machine that has it knows its path.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepTree {
    /// That of the feature. Its gates run in a tree beside it.
    #[default]
    Feature,
    /// An integration work tree, for a merged result.
    Integration(u32),
}

/// The work of a run that is on the target or on `longhaul/next`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LandedWork {
    /// The commit that landed.
    pub commit: String,
    /// The files that it changed, relative to the root.
    pub files: Vec<String>,
}

/// Output of [`OpenWorktree`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Worktree {
    /// Its branch.
    pub branch: String,
    /// Its head commit.
    pub head: String,
    /// The ref with the uncommitted work that was found in it.
    pub rescued: Option<String>,
    /// Whether the branch has commits that are not in the tip.
    #[serde(default)]
    pub has_work: bool,
    /// The work that an earlier run has landed, if the input asked for that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub landed: Option<LandedWork>,
}

activity! {
    /// Merges the tip into a feature's branch, and updates its clean work tree. A branch without
    /// own commits is fast-forwarded; any other gets a merge commit. A conflict changes nothing.
    /// Running it again gives the same commit.
    RefreshWorktree = "refresh_worktree": RefreshInput => Refreshed, git_policy()
}

/// Input of [`RefreshWorktree`].
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RefreshInput {
    /// The project.
    pub project: ProjectRef,
    /// The target branch.
    pub target: String,
    /// The feature.
    pub feature: FeatureId,
    /// The feature list, relative to the root.
    pub list_file: String,
    /// The version of the feature that the run knows:
    /// [`Feature::version`](crate::backlog::Feature).
    pub version: String,
}

/// Output of [`RefreshWorktree`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Refreshed {
    /// The head of the branch.
    pub commit: String,
    /// The tip.
    pub tip: String,
    /// The files in which the branch differs from the tip, relative to the root; after a conflict,
    /// the files that it changes.
    pub files: Vec<String>,
    /// Why the tip is not in the branch.
    pub conflict: Option<RefreshConflict>,
    /// Whether the list or the settings have another version of the feature now.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_edited: bool,
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
    /// Ends a step: restores protected files from the tip (or its last merge into the branch), then
    /// commits all changes. The commit is the checkpoint of the step.
    Seal = "seal": SealInput => Sealed, git_policy()
}

/// Input of [`Seal`].
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SealInput {
    /// The project.
    pub project: ProjectRef,
    /// The target branch.
    pub target: String,
    /// The feature.
    pub feature: FeatureId,
    /// Globs of files that an agent may not change, relative to the root of the repository.
    pub protected: Vec<String>,
    /// The feature list, relative to the root.
    pub list_file: String,
    /// The step: with the feature id, the subject of the commit.
    pub step: SealStep,
}

/// The step that a commit seals.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum SealStep {
    /// Unlanded work of an earlier run was found.
    #[default]
    Found,
    /// A session ended.
    Ended {
        /// Its number.
        session: u32,
        /// How, as a clause: `done`, `exit code 1`.
        ending: String,
    },
    /// The feature was cancelled during a session.
    Cancelled {
        /// Its number.
        session: u32,
    },
    /// The window of a session fills.
    Checkpoint {
        /// Its number.
        session: u32,
    },
    /// The conversation of a session is about to be summarised.
    PreOverflow {
        /// Its number.
        session: u32,
    },
    /// A session hands over to the next one.
    Handoff {
        /// Its number.
        session: u32,
    },
}

impl fmt::Display for SealStep {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Found => formatter.write_str("found"),
            Self::Ended { session, ending } => write!(formatter, "session {session}, {ending}"),
            Self::Cancelled { session } => write!(formatter, "session {session}, cancelled"),
            Self::Checkpoint { session } => write!(formatter, "session {session}, checkpoint"),
            Self::PreOverflow { session } => {
                write!(formatter, "session {session}, pre-overflow checkpoint")
            }
            Self::Handoff { session } => write!(formatter, "session {session}, handoff"),
        }
    }
}

impl SealInput {
    /// The subject of the commit.
    pub fn subject(&self) -> String {
        format!("{}: {}", self.feature, self.step)
    }
}

/// A forbidden change by an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tampering {
    /// The file, relative to the root.
    pub file: String,
    /// The change: `feature "x": passes was set to true`.
    pub what: String,
}

/// A file of a work tree that is too large for a commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// The file, relative to the root.
    pub file: String,
    /// Its size.
    pub bytes: u64,
}

impl fmt::Display for LeftOut {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (size, unit) = match self.bytes {
            gigabytes @ 1_000_000_000.. => (gigabytes / 1_000_000_000, "GB"),
            others => (others / 1_000_000, "MB"),
        };
        write!(formatter, "{} ({size} {unit})", self.file)
    }
}

/// Output of [`Seal`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sealed {
    /// The commit with the work.
    pub commit: String,
    /// The files that the branch changes, relative to the root; empty: it has no work.
    pub files: Vec<String>,
    /// The restored files.
    pub tampered: Vec<Tampering>,
    /// The files that are too large for the commit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOut>,
    /// The ref with the content before the restoration.
    pub rescued: Option<String>,
    /// The text that the agent appended to the progress file.
    pub notes: String,
    /// Why the progress file in the work tree was not read, if it is not a regular file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unread_notes: Option<String>,
    /// Branches moved by other programs since the session began.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outside: Vec<OutsideChange>,
}

activity! {
    /// Creates the commit to land: the tip merged with the feature's work, with the feature marked
    /// as passing in the list, checked out in an integration work tree of the project. No ref
    /// points to it yet.
    MergeCandidate = "merge_candidate": MergeInput => Merged, git_policy()
}

/// Input of [`MergeCandidate`].
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct MergeInput {
    /// The project.
    pub project: ProjectRef,
    /// The target branch.
    pub target: String,
    /// The feature.
    pub feature: FeatureId,
    /// The sealed commit to merge.
    pub commit: String,
    /// The merge style.
    pub style: MergeStyle,
    /// Globs of files kept as the tip has them, whatever the merge result, relative to the root.
    pub protected: Vec<String>,
    /// The feature list, relative to the root.
    pub list_file: String,
    /// The subject of the commit.
    pub subject: String,
    /// The body of the commit; may be empty.
    pub body: String,
    /// The time of the commit and of `last_tested`, RFC 3339: fixed, so that every attempt creates
    /// the same commit.
    pub at: String,
    /// The integration work tree of the merge turn.
    pub tree: u32,
    /// The features that the commit marks as passing in the list.
    #[serde(default, skip_serializing_if = "PassMark::is_own")]
    pub mark: PassMark,
}

/// The features that a commit marks as passing in the list, if it contains the list.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PassMark {
    /// The one that lands.
    #[default]
    Own,
    /// None: a later commit marks it.
    Later,
    /// The one that lands, and these.
    With(Vec<FeatureId>),
}

impl PassMark {
    pub(crate) fn is_own(&self) -> bool {
        *self == Self::Own
    }
}

/// Output of [`MergeCandidate`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "result", rename_all = "snake_case")]
pub enum Merged {
    /// It merges without conflicts.
    Candidate {
        /// The commit to land.
        commit: String,
        /// Its tip.
        tip: String,
        /// The files that it changes, relative to the root.
        files: Vec<String>,
        /// Whether its content is that of the sealed commit, apart from the mark in the list.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        same_as_work: bool,
        /// Protected files that the merge changed, restored from the tip.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        put_back: Vec<String>,
        /// Branches moved by other programs.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        outside: Vec<OutsideChange>,
    },
    /// It conflicts.
    Conflict {
        /// The tip that it conflicts with.
        tip: String,
        /// The files in conflict.
        files: Vec<String>,
        /// The output of git.
        output: String,
    },
}

activity! {
    /// Moves the target branch forward to a commit whose gates passed. A clean checkout of the
    /// target follows; with changes in it, `longhaul/next` moves instead. The probe looks for the
    /// commit on the branch.
    Land = "land": LandInput => Landed, Policy { effect: Effect::Guarded, ..git_policy() }
}

/// Input of [`Land`].
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LandInput {
    /// The project.
    pub project: ProjectRef,
    /// The target branch.
    pub target: String,
    /// The tip of the commit; terminal failure [`Land::STALE`] if the target has moved since.
    pub tip: String,
    /// The commit to land.
    pub commit: String,
    /// The feature list, relative to the root.
    pub list_file: String,
    /// The feature.
    pub feature: FeatureId,
    /// The version of the feature whose gates passed; terminal failure [`Land::EDITED`] if the list
    /// or the settings have another one. `None`: the project has no other one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

/// Output of [`Land`] and [`Follow`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Landed {
    /// The head of the target branch.
    pub target_commit: String,
    /// Why finished work waits on `longhaul/next`; `None`: none waits.
    pub waits_on_next: Option<String>,
    /// Whether the target and `longhaul/next` have both moved, and can be merged without a
    /// conflict. No gate has passed on that merge.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub can_merge: bool,
    /// Branches moved by other programs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outside: Vec<OutsideChange>,
}

impl Landed {
    /// A landing on the target, or on `longhaul/next` with the reason.
    pub fn at(target_commit: String, waits_on_next: Option<String>) -> Self {
        Self { target_commit, waits_on_next, can_merge: false, outside: Vec::new() }
    }
}

impl Land {
    /// The failure code for a moved target branch: the work must be merged again.
    pub const STALE: &'static str = "stale";
    /// The failure code for an edited feature: other gates must pass.
    pub const EDITED: &'static str = "edited";
}

activity! {
    /// Moves the target branch to `longhaul/next` if work waits there and the user's checkout is
    /// clean.
    Follow = "follow": FollowInput => Landed, git_policy()
}

/// Input of [`Follow`].
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FollowInput {
    /// The project.
    pub project: ProjectRef,
    /// The target branch.
    pub target: String,
    /// The feature list, relative to the root.
    pub list_file: String,
}

activity! {
    /// Removes the work tree and the branch of a landed feature. The tip of the branch stays under
    /// `refs/longhaul/features/<run>`, uncommitted work under a rescue ref.
    CloseWorktree = "close_worktree": CloseInput => (), git_policy()
}

/// Input of [`CloseWorktree`].
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CloseInput {
    /// The project.
    pub project: ProjectRef,
    /// The feature.
    pub feature: FeatureId,
}
