//! What one session leaves for the next, as facts: how an agent is told of them is decided where it
//! is told.

use serde::{Deserialize, Serialize};

use super::{Evidence, Tampering};

/// What the last session left for the next.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Feedback {
    /// What went wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<Problem>,
    /// What the last session wrote into its notes.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub notes: String,
    /// What was put back.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tampered: Vec<Tampering>,
    /// Refs that keep uncommitted work of sessions that died.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rescued: Vec<String>,
    /// Why the target is not in the work tree.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub behind: Option<Behind>,
    /// What people said to this run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub guidance: Vec<String>,
}

/// The target has moved, and the work conflicts with it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Behind {
    /// The commit that the work does not merge with.
    pub tip: String,
    /// The files in conflict.
    pub files: Vec<String>,
}

/// Why there is another session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "problem", rename_all = "snake_case")]
pub enum Problem {
    /// A check failed.
    CheckFailed {
        /// How.
        evidence: Box<Evidence>,
        /// The commit that the work had been merged with; `None`: it was checked by itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        merged_with: Option<String>,
    },
    /// The work does not merge with this commit.
    Conflict {
        /// The commit.
        tip: String,
        /// The files in conflict.
        files: Vec<String>,
        /// What git said.
        output: String,
    },
    /// The session itself failed.
    SessionFailed {
        /// `exit code 1`, `silent for 600 s`.
        reason: String,
        /// The end of its output.
        output_tail: String,
    },
    /// A person looked at the work and does not want it merged as it is.
    Denied {
        /// Who.
        by: String,
        /// In their words.
        why: String,
    },
}

impl Problem {
    /// The end of the output of the session that failed; empty for other problems, whose output is
    /// recorded as evidence.
    pub fn output(&self) -> &str {
        match self {
            Self::SessionFailed { output_tail, .. } => output_tail,
            Self::CheckFailed { .. } | Self::Conflict { .. } | Self::Denied { .. } => "",
        }
    }
}
