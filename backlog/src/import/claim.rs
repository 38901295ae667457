//! Claims of imported entries, kept without effect on `passes`.

use serde_json::{Map, Value, json};

use crate::list::CLAIMED_PASSES;
use longhaul_workflows::backlog::{Feature, FeatureStatus};

/// The key in which an export for a status-trusting tool keeps a claim.
pub(crate) const CLAIMED_STATUS: &str = "claimed_status";
const CLAIMED_LAST_TESTED: &str = "claimed_last_tested";

/// Moves `passes` and the test time of a feature into separate keys. A status such as `completed`
/// stays: it makes Longhaul run the gates before it starts an agent.
pub(super) fn set_apart(feature: &mut Feature, extra: &mut Map<String, Value>) {
    let is_done = |status: &Value| *status == FeatureStatus::Completed.as_str();
    if feature.status == FeatureStatus::Pending && extra.get(CLAIMED_STATUS).is_some_and(is_done) {
        feature.status = FeatureStatus::Completed;
        extra.shift_remove(CLAIMED_STATUS);
    }
    if std::mem::take(&mut feature.passes) {
        extra.entry(CLAIMED_PASSES).or_insert(json!(true));
    }
    if let Some(tested) = feature.last_tested.take().filter(|tested| !tested.trim().is_empty()) {
        extra.entry(CLAIMED_LAST_TESTED).or_insert(json!(tested));
    }
}

/// Whether the entry is claimed to pass.
pub(super) fn is_claimed(extra: &Map<String, Value>) -> bool {
    extra.get(CLAIMED_PASSES) == Some(&json!(true))
}
