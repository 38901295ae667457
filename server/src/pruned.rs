//! Pruned runs: their status without a history.

use chrono::SecondsFormat;
use longhaul_engine::Summary;

/// When the current history of a run was pruned; a run that was started again has a new history.
pub fn at(summary: &Summary) -> Option<String> {
    summary.pruned_at().map(|at| at.to_rfc3339_opts(SecondsFormat::Secs, true))
}

/// Why a request for the history is refused.
pub fn refusal(run: impl std::fmt::Display, at: &str) -> String {
    let date = at.split('T').next().unwrap_or(at);
    format!("run {run} was pruned on {date}; its history is gone")
}
