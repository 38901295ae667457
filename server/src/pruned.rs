//! Runs whose histories were let go of: what can be said of them still.

use chrono::SecondsFormat;
use longhaul_engine::{RunId, Summary};

/// When the history of a run as it stands now was pruned; one that was started again since has a new one.
pub fn at(summary: &Summary) -> Option<String> {
    summary.pruned_at().map(|at| at.to_rfc3339_opts(SecondsFormat::Secs, true))
}

/// What whoever needs the history is told.
pub fn refusal(run: &RunId, at: &str) -> String {
    let date = at.split('T').next().unwrap_or(at);
    format!("run {run} was pruned on {date}; its history is not there any more")
}
