//! Feedback of one session for the next, as facts; the prompt words them.

use serde::{Deserialize, Serialize};

use super::{Evidence, LeftOut, Tampering};

/// The feedback of the last session for the next.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Feedback {
    /// The problem that causes another session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<Problem>,
    /// The notes file of the last session.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub notes: String,
    /// The restored files.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tampered: Vec<Tampering>,
    /// The files that are too large for the commit.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOut>,
    /// Refs with uncommitted work of sessions that died.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rescued: Vec<String>,
    /// Why the target is not merged into the work tree.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub behind: Option<TargetConflict>,
    /// Notes of people to this run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub guidance: Vec<String>,
}

/// The target has moved, and the work conflicts with it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TargetConflict {
    /// The commit that conflicts with the work.
    pub tip: String,
    /// The files in conflict.
    pub files: Vec<String>,
}

/// The problem that causes another session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "problem", rename_all = "snake_case")]
pub enum Problem {
    /// A check failed.
    CheckFailed {
        /// Its evidence.
        evidence: Box<Evidence>,
        /// The commit that the work was merged with; `None`: it was checked by itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        merged_with: Option<String>,
    },
    /// The work conflicts with this commit.
    Conflict {
        /// The commit.
        tip: String,
        /// The files in conflict.
        files: Vec<String>,
        /// The output of git.
        output: String,
    },
    /// The session itself failed.
    SessionFailed {
        /// `exit code 1`, `silent for 600 s`.
        reason: String,
        /// The end of its output.
        output_tail: String,
    },
    /// A person reviewed the work and rejected it.
    Denied {
        /// The reviewer.
        by: String,
        /// The reason.
        why: String,
    },
}

impl Problem {
    /// The end of the output of the failed session; empty for other problems, whose output is
    /// recorded as evidence.
    pub fn output(&self) -> &str {
        match self {
            Self::SessionFailed { output_tail, .. } => output_tail,
            Self::CheckFailed { .. } | Self::Conflict { .. } | Self::Denied { .. } => "",
        }
    }
}
