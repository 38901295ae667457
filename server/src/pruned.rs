//! Runs whose histories were let go of: what can be said of them still.

use chrono::SecondsFormat;
use longhaul_engine::Summary;

/// When the history of a run as it stands now was pruned; one that was started again since has a
/// new one.
pub fn at(summary: &Summary) -> Option<String> {
    summary.pruned_at().map(|at| at.to_rfc3339_opts(SecondsFormat::Secs, true))
}

/// Why a request for the history is refused.
pub fn refusal(run: impl std::fmt::Display, at: &str) -> String {
    let date = at.split('T').next().unwrap_or(at);
    format!("run {run} was pruned on {date}; its history is not there any more")
}
