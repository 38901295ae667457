//! The parts of documents that come from a history.

use chrono::{DateTime, Utc};
use longhaul_engine::Position;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How often an activity was called and tried.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Activity {
    pub(crate) name: String,
    /// Calls that are done.
    pub(crate) completed: u32,
    /// Tries, those that failed included.
    pub(crate) attempts: u32,
    pub(crate) failures: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) last_failure: Option<LastFailure>,
}

/// The last failed try of an activity.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct LastFailure {
    pub(crate) position: Position,
    pub(crate) at: DateTime<Utc>,
    pub(crate) attempt: u32,
    /// `retryable`, `terminal`, `cancelled`, `machine` or `rate_limited`.
    pub(crate) kind: String,
    pub(crate) message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) retry_at: Option<DateTime<Utc>>,
}

/// A check that Longhaul ran, and what it left.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Evidence {
    pub(crate) position: Position,
    pub(crate) at: DateTime<Utc>,
    /// What was being done: `gates`, `merging`.
    pub(crate) step: String,
    pub(crate) name: String,
    pub(crate) command: String,
    pub(crate) passed: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) exit_code: Option<i32>,
    /// What ended it, if it was not an exit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ended_by: Option<String>,
    pub(crate) duration_ms: u64,
    pub(crate) commit: String,
    /// blake3 of the whole output, in hex.
    pub(crate) output_digest: String,
    /// The end of the output.
    pub(crate) output_tail: String,
    /// The file with the whole output.
    pub(crate) log: String,
    /// Protected files that had to be put back just before it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) put_back: Vec<String>,
}

impl Evidence {
    /// How it ended, for people.
    pub(crate) fn ending(&self) -> String {
        match (&self.ended_by, self.exit_code) {
            (Some(reason), _) => reason.clone(),
            (None, Some(code)) => format!("exit code {code}"),
            (None, None) => "no exit code".into(),
        }
    }
}

/// A session of an agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Session {
    pub(crate) number: u32,
    /// The call: the name of its folder in `sessions/<run>/`.
    pub(crate) call: String,
    /// Why it was begun: `start`, `continue`, `retry`, `repair`, `gates_failed` or `conflict`.
    pub(crate) reason: String,
    /// Tries; more than one if it was cut.
    pub(crate) attempts: u32,
    pub(crate) started_at: DateTime<Utc>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ended_at: Option<DateTime<Utc>>,
    /// How long the agent worked; absent while it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) seconds: Option<f64>,
    /// `claims_done`, `context_full`, or why it failed; absent while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ending: Option<String>,
    /// What it cost in US dollars, where the agent says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) cost_usd: Option<f64>,
    /// The file with the whole output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) log: Option<String>,
}

/// A segment of a history: how it began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Segment {
    pub(crate) position: Position,
    pub(crate) at: DateTime<Utc>,
    /// `started`, `continued_as_new` or `restarted`.
    pub(crate) cause: String,
}

impl Session {
    /// Whether it is not over.
    pub(super) fn is_open(&self) -> bool {
        self.ended_at.is_none()
    }
}
