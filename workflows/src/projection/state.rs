//! The states of runs, features and projects, as named in every output.

use longhaul_engine::Status;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The state of a run, a feature, a project or a batch.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Workable.
    #[default]
    Pending,
    /// In progress: an agent, a check or a merge is at work, or is next.
    Running,
    /// It waits: a feature for a dependency, a run for its turn, an answer or the next attempt, a
    /// project for a process that runs it.
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
    /// A project or a batch: it makes no progress without a person.
    NeedsAttention,
    /// A project or a batch: all features passed.
    Done,
}

/// The state of a project or a batch: some of the states.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProjectState {
    /// A process works on it.
    Running,
    /// There is work, but no process runs it, or other projects come first.
    #[default]
    Waiting,
    /// It makes no progress without a person.
    NeedsAttention,
    /// All features passed.
    Done,
    /// Cancelled by a person, or its run is closed.
    Cancelled,
    /// Paused by a person.
    Paused,
}

impl ProjectState {
    /// The name of the state.
    pub fn as_str(self) -> &'static str {
        State::from(self).as_str()
    }
}

impl From<ProjectState> for State {
    fn from(state: ProjectState) -> Self {
        match state {
            ProjectState::Running => Self::Running,
            ProjectState::Waiting => Self::Waiting,
            ProjectState::NeedsAttention => Self::NeedsAttention,
            ProjectState::Done => Self::Done,
            ProjectState::Cancelled => Self::Cancelled,
            ProjectState::Paused => Self::Paused,
        }
    }
}

impl State {
    /// All states, from the first to the last of a lifetime.
    pub const ALL: [Self; 11] = [
        Self::Pending,
        Self::Running,
        Self::Waiting,
        Self::Passed,
        Self::Blocked,
        Self::Failed,
        Self::Cancelled,
        Self::Paused,
        Self::Parked,
        Self::NeedsAttention,
        Self::Done,
    ];

    /// Whether this state is final.
    pub fn is_over(self) -> bool {
        matches!(self, Self::Passed | Self::Blocked | Self::Failed | Self::Cancelled | Self::Done)
    }

    /// The name of the state in JSON and on the command line.
    pub fn word(self) -> &'static str {
        match self {
            Self::NeedsAttention => "needs_attention",
            state => state.as_str(),
        }
    }

    /// The name of the state for people.
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
            Self::NeedsAttention => "needs attention",
            Self::Done => "done",
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
        let words = Self::ALL.map(Self::word);
        let unknown = || format!("`{text}` is none of {}", words.join(", "));
        let wanted = text.replace(['-', ' '], "_");
        let at = words.iter().position(|word| *word == wanted).ok_or_else(unknown)?;
        Ok(Self::ALL[at])
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
