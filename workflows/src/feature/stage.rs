//! The stages of a feature run.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::contracts::SessionReason;

/// The current stage of a feature run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Its work tree is made.
    WorkTree,
    /// The set-up of the project runs.
    SetUp,
    /// A session works.
    Session {
        /// Its number in the run.
        number: u32,
        /// The cause of the session.
        reason: SessionReason,
        /// Whether protected files were reverted before it.
        after_tampering: bool,
        /// Whether no session has changed a file so far.
        after_no_change: bool,
    },
    /// The gates run on its work.
    Gates,
    /// Its gates run on the current target before it is given up.
    LastTry,
    /// It takes the last notes before it is given up.
    GivingUp,
    /// It waits until it may check the target.
    TurnToCheck,
    /// Its gates run on the target.
    GatesOnTarget,
    /// It waits until it may merge.
    TurnToMerge,
    /// It merges and lands.
    Merging,
    /// A person must approve it.
    Approval,
}

impl Stage {
    /// Whether it waits for the lease to merge or to check.
    pub fn waits_for_turn(&self) -> bool {
        matches!(self, Self::TurnToCheck | Self::TurnToMerge)
    }

    /// Whether it waits for its project or a person.
    pub fn waits_for_others(&self) -> bool {
        self.waits_for_turn() || *self == Self::Approval
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::WorkTree => "work tree",
            Self::SetUp => "set-up",
            Self::Session { number, reason, after_tampering, after_no_change } => {
                write!(formatter, "session {number}")?;
                return remarks(*reason, *after_tampering, *after_no_change, formatter);
            }
            Self::Gates => "gates",
            Self::LastTry => "last try on the target as it is now",
            Self::GivingUp => "giving up",
            Self::TurnToCheck => "waiting to check the target",
            Self::GatesOnTarget => "gates on the target",
            Self::TurnToMerge => "waiting to merge",
            Self::Merging => "merging",
            Self::Approval => "waiting for approval",
        })
    }
}

/// The reason and the circumstances of a session, in parentheses, if there are any.
fn remarks(
    reason: SessionReason,
    after_tampering: bool,
    after_no_change: bool,
    formatter: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    let mut remarks = Vec::new();
    if reason != SessionReason::Start {
        remarks.push(reason.as_str().replace('_', " "));
    }
    if after_tampering {
        remarks.push("tampering put back".to_owned());
    }
    if after_no_change {
        remarks.push(
            "no file changed so far: may the agent write, and does git ignore its files?"
                .to_owned(),
        );
    }
    if remarks.is_empty() { Ok(()) } else { write!(formatter, " ({})", remarks.join(", ")) }
}
