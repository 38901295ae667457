//! The parts of documents that come from a history.

use chrono::{DateTime, Utc};
use longhaul_engine::Position;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How often an activity was called and tried.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Activity {
    /// Its name.
    pub name: String,
    /// Calls that are done.
    pub completed: u32,
    /// Tries, those that failed included.
    pub attempts: u32,
    /// How many attempts failed.
    pub failures: u32,
    /// The last failure of an attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_failure: Option<LastFailure>,
}

/// The last failed try of an activity.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LastFailure {
    /// The position of its event in the history.
    pub position: Position,
    /// When it was recorded.
    pub at: DateTime<Utc>,
    /// The number of the attempt, from 1.
    pub attempt: u32,
    /// `retryable`, `terminal`, `cancelled`, `machine` or `rate_limited`.
    pub kind: String,
    /// What failed.
    pub message: String,
    /// When the next attempt is due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_at: Option<DateTime<Utc>>,
}

/// A check that Longhaul ran, and what it left.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Evidence {
    /// The position of its event in the history.
    pub position: Position,
    /// When it was recorded.
    pub at: DateTime<Utc>,
    /// What was being done: `gates`, `merging`.
    pub step: String,
    /// Its name.
    pub name: String,
    /// The command that was run.
    pub command: String,
    /// Whether it passed.
    pub passed: bool,
    /// Its exit code; absent: a signal or a time limit ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// What ended it, if it was not an exit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_by: Option<String>,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
    /// The commit on which it was run.
    pub commit: String,
    /// blake3 of the whole output, in hex.
    pub output_digest: String,
    /// The end of the output.
    pub output_tail: String,
    /// The file with the whole output.
    pub log: String,
    /// Protected files that had to be put back just before it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub put_back: Vec<String>,
}

impl Evidence {
    /// How it ended, for people.
    pub fn ending(&self) -> String {
        match (&self.ended_by, self.exit_code) {
            (Some(reason), _) => reason.clone(),
            (None, Some(code)) => format!("exit code {code}"),
            (None, None) => "no exit code".into(),
        }
    }
}

/// A session of an agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Session {
    /// Its number within the run, from 1.
    pub number: u32,
    /// The call: the name of its folder in `sessions/<run>/`.
    pub call: String,
    /// Why it was begun: `start`, `continue`, `retry`, `repair`, `gates_failed` or `conflict`.
    pub reason: String,
    /// Tries; more than one if it was cut.
    pub attempts: u32,
    /// When it began.
    pub started_at: DateTime<Utc>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<DateTime<Utc>>,
    /// How long the agent worked; absent while it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    /// `claims_done`, `context_full`, or why it failed; absent while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ending: Option<String>,
    /// What it cost in US dollars, where the agent says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// The file with the whole output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<String>,
}

/// A segment of a history: how it began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Segment {
    /// The position of its event in the history.
    pub position: Position,
    /// When it was recorded.
    pub at: DateTime<Utc>,
    /// `started`, `continued_as_new` or `restarted`.
    pub cause: String,
}

impl Session {
    /// Whether it is not over.
    pub(super) fn is_open(&self) -> bool {
        self.ended_at.is_none()
    }
}
