//! Why a run of a feature gave up. [`narrative`](crate::narrative) has the texts.

use serde::{Deserialize, Serialize};

use crate::backlog::FeatureId;
use crate::contracts::{Evidence, Problem};
use crate::resources::{Resource, Resources};

/// Why a run gave up, with the last problem of its work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FeatureBlock {
    /// The reason.
    pub reason: BlockReason,
    /// The last problem, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<Problem>,
}

/// Why a run gave up, or gets no session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum BlockReason {
    /// Something happened as often as the limits allow.
    Attempts {
        /// What happened.
        of: Attempts,
        /// How often.
        count: u32,
    },
    /// The last sessions changed nothing.
    Stalled {
        /// Their number.
        sessions: u32,
    },
    /// A resource of the feature is spent.
    Limit {
        /// The resource.
        resource: Resource,
        /// The limits of the feature.
        limits: Resources,
    },
    /// A resource of the project is spent.
    Budget {
        /// The resource.
        resource: Resource,
        /// The budget of the project.
        budget: Resources,
    },
    /// The baseline of the project is broken, and its repair was given up.
    Baseline {
        /// The broken commit.
        broken: BrokenBase,
        /// The repairs.
        given_up: Vec<GivenUp>,
    },
    /// The next session cannot have an id.
    SessionId,
    /// The set-up fails without any work of an agent.
    Setup,
    /// No session can make a check pass.
    Check {
        /// The check, with its unmet need.
        evidence: Box<Evidence>,
    },
    /// A step of Longhaul failed, not the work.
    Step {
        /// The message of the failure.
        message: String,
    },
}

/// What the limits of a feature count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Attempts {
    /// Failures of the gates.
    FailedGates,
    /// Conflicts with the target.
    Conflicts,
    /// Failed sessions.
    FailedSessions,
    /// Sessions.
    Sessions,
}

/// A commit that fails the project's own baseline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BrokenBase {
    /// The commit.
    pub commit: String,
    /// The failed check or set-up script, with its article.
    pub check: String,
    /// How it ended: `exit code 1`.
    pub ending: String,
}

/// A feature gave up on the repair of the baseline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GivenUp {
    /// The feature.
    pub feature: FeatureId,
    /// The first line of the reason.
    pub reason: String,
}

impl FeatureBlock {
    /// The end of the output of the last failed session, if that is why it gave up; else empty. The
    /// output of checks is recorded as evidence.
    pub fn output(&self) -> &str {
        let problem = self.problem.as_ref().filter(|_| !self.reason.is_unready());
        problem.map(Problem::output).unwrap_or_default()
    }
}

impl BlockReason {
    /// The spent resource: more of it helps.
    pub fn over_limit(&self) -> Option<Resource> {
        match self {
            Self::Limit { resource, .. } | Self::Budget { resource, .. } => Some(*resource),
            _ => None,
        }
    }

    /// Whether no session was paid, because none can succeed before a person acts: the next
    /// `longhaul run` tries it again.
    pub fn is_unready(&self) -> bool {
        matches!(self, Self::Setup | Self::Check { .. } | Self::Step { .. })
    }
}
