//! The messages between a feature and its project: permission for sessions, and the merge lease.

use longhaul_engine::RunId;
use serde::{Deserialize, Serialize};

use crate::backlog::{Check, FeatureId};
use crate::contracts::{PassMark, SessionReason};
use crate::resources::Resources;
use crate::settings::AgentSettings;

use super::block::{BlockReason, BrokenBase};

/// The signal `session_request`: a feature asks its project for a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionRequest {
    /// The number of the session in the run of the feature, from one.
    pub number: u32,
    /// Why it needs a session.
    pub reason: SessionReason,
    /// The identity of its agent.
    pub agent: Vec<String>,
    /// The files that its work changes or conflicts in, relative to the root.
    pub files: Vec<String>,
    /// Whether the session resolves a merge conflict: the tip should not move meanwhile.
    pub resolves: bool,
    /// The failed baseline check of the commit that it starts from.
    pub broken: Option<BrokenBase>,
    /// The resources that its sessions may use, by the limits of the feature.
    pub left: Resources,
}

/// The signal `session_permit`: the answer to a [`SessionRequest`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "permit", rename_all = "snake_case")]
pub enum SessionPermit {
    /// The session may begin.
    Granted {
        /// The id of its run. A fork copies this answer, so it never names another session.
        session: RunId,
        /// How many of its failed sessions belong to an outage of the agent; they do not count.
        forgiven: u32,
        /// The agent to use from now on: the current one does not work, and the settings name
        /// another.
        agent: Option<Box<AgentSettings>>,
        /// The resources that the session may use, reserved until it has ended.
        available: Resources,
    },
    /// The target has moved since the baseline failed: start from it and run the baseline again.
    Rebase,
    /// The session is refused.
    Refused {
        /// The reason.
        reason: BlockReason,
    },
}

/// The signal `session_ended`: the outcome of a granted session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionEnded {
    /// The identity of the agent.
    pub agent: Vec<String>,
    /// The outcome.
    pub result: SessionResult,
    /// The resources that the session and its successors used.
    pub used: Resources,
}

/// The outcome of a granted session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "result", rename_all = "snake_case")]
pub enum SessionResult {
    /// The agent worked: it ended normally, or it worked for a while and changed files.
    Worked {
        /// Whether the agent called the work done.
        done: bool,
    },
    /// It was not used.
    Unused,
    /// It failed, at once or without a change.
    Failed {
        /// `exit code 1`, or why the agent could not be started.
        ending: String,
        /// The last line of the output.
        last_words: String,
        /// Whether the agent could be started.
        started: bool,
        /// Whether it changed files.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        changed: bool,
    },
}

impl SessionRequest {
    /// The name of the signal.
    pub const SIGNAL: &'static str = "session_request";
}

impl SessionPermit {
    /// The name of the signal.
    pub const SIGNAL: &'static str = "session_permit";
}

impl SessionEnded {
    /// The name of the signal.
    pub const SIGNAL: &'static str = "session_ended";
}

/// The signal `merge_request`: a feature requests the merge lease.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MergeRequest {
    /// The feature.
    pub feature: FeatureId,
    /// The files that its work changes.
    pub files: Vec<String>,
}

/// The signal `merge_lease`: the feature may merge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MergeLease {
    /// The checks of finished features that the merge could break.
    pub regression: Vec<RegressionCheck>,
    /// The integration work tree, exclusive to this run until it returns the lease or ends.
    pub tree: u32,
    /// The features that its commit marks in the list.
    #[serde(default, skip_serializing_if = "PassMark::is_own")]
    pub mark: PassMark,
}

/// A check of a finished feature.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegressionCheck {
    /// The feature.
    pub feature: FeatureId,
    /// Its check.
    pub check: Check,
}

impl RegressionCheck {
    /// The check, with the name of its feature.
    pub(super) fn named(&self) -> Check {
        let name = format!("{}: {}", self.feature, self.check.name);
        Check { name, ..self.check.clone() }
    }
}

/// The signal `pass_refuted`: a finished feature fails a check on the target itself, without the
/// work that found it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PassRefuted {
    /// The finished feature.
    pub feature: FeatureId,
    /// The name of its check.
    pub check: String,
    /// The commit of the target.
    pub commit: String,
}

impl PassRefuted {
    /// The name of the signal.
    pub const SIGNAL: &'static str = "pass_refuted";
}

impl MergeRequest {
    /// The name of the signal.
    pub const SIGNAL: &'static str = "merge_request";
}

impl MergeLease {
    /// The name of the signal that grants the lease.
    pub const GRANTED: &'static str = "merge_lease";
    /// The name of the signal that returns the lease without a merge. Its content is the feature's
    /// id.
    pub const RELEASED: &'static str = "merge_lease_released";
}
