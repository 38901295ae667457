//! Pruned runs: their status without a history.

use chrono::{DateTime, Utc};

/// Why a request for the history is refused.
pub fn refusal(run: impl std::fmt::Display, at: DateTime<Utc>) -> String {
    format!("run {run} was pruned on {}; its history is gone", at.format("%Y-%m-%d"))
}
