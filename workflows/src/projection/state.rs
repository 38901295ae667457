//! The states of runs and features, as named in every output.

use longhaul_engine::Status;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The state of a run or a feature.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Workable.
    #[default]
    Pending,
    /// In progress.
    Running,
    /// A feature: a dependency has not passed. A run: it waits for a message, a timer or the next
    /// attempt.
    Waiting,
    /// Completed. A feature: its gates passed on the target branch.
    Passed,
    /// It was given up, or blocked by a person.
    Blocked,
    /// Failed.
    Failed,
    /// Cancelled or terminated by a person.
    Cancelled,
    /// Paused by a person.
    Paused,
    /// The outcome of an effect is unknown.
    Parked,
}

impl State {
    /// All states, from the first to the last of a lifetime.
    pub const ALL: [Self; 9] = [
        Self::Pending,
        Self::Running,
        Self::Waiting,
        Self::Passed,
        Self::Blocked,
        Self::Failed,
        Self::Cancelled,
        Self::Paused,
        Self::Parked,
    ];

    /// Whether this state is final.
    pub fn is_over(self) -> bool {
        matches!(self, Self::Passed | Self::Blocked | Self::Failed | Self::Cancelled)
    }

    /// The name of the state.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::Passed => "passed",
            Self::Blocked => "blocked",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Paused => "paused",
            Self::Parked => "parked",
        }
    }
}

impl std::fmt::Display for State {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.pad(self.as_str())
    }
}

impl std::str::FromStr for State {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let unknown = || format!("`{text}` is none of {}", Self::ALL.map(Self::as_str).join(", "));
        Self::ALL.into_iter().find(|state| state.as_str() == text).ok_or_else(unknown)
    }
}

impl From<&Status> for State {
    fn from(status: &Status) -> Self {
        match status {
            Status::Running => Self::Running,
            Status::Waiting { .. } => Self::Waiting,
            Status::Paused(_) => Self::Paused,
            Status::Parked(_) => Self::Parked,
            Status::Completed => Self::Passed,
            Status::Failed(_) => Self::Failed,
            Status::Cancelled => Self::Cancelled,
        }
    }
}
