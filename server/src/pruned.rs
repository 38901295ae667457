//! Runs whose histories were let go of: what can be said of them still.

use longhaul_engine::Summary;
use longhaul_storage::PRUNED_LABEL;

/// When the history of a run as it stands now was pruned; one that was started again since has a new one.
pub fn at(summary: &Summary) -> Option<&str> {
    let (events, at) = summary.labels.get(PRUNED_LABEL)?.split_once(" events on ")?;
    (events.parse() == Ok(summary.origin)).then_some(at)
}

/// Why a request for the history is refused.
pub fn refusal(run: impl std::fmt::Display, at: &str) -> String {
    let date = at.split('T').next().unwrap_or(at);
    format!("run {run} was pruned on {date}; its history is not there any more")
}
