//! The vocabulary of status and priority, and the claim of an entry.

use serde_json::{Map, Value};

use super::shape::spelling;
use longhaul_workflows::backlog::FeatureStatus;

pub(super) const STATUS_KEYS: [&str; 2] = ["status", "state"];
pub(super) const PASSES_KEYS: [&str; 1] = ["passes"];
pub(super) const TESTED_KEYS: [&str; 2] = ["last_tested", "lastTested"];
/// The key in which an import keeps a foreign claim; never read as a claim.
pub(crate) const CLAIMED_PASSES: &str = "claimed_passes";
/// The keys of an entry that Longhaul owns.
pub(super) const OWNED_KEYS: [&str; 5] = ["status", "state", "passes", "last_tested", "lastTested"];

/// The status of a word; `None` for an unknown word.
pub(crate) fn status_of_word(word: &str) -> Option<FeatureStatus> {
    let word = word.trim().to_lowercase().replace(['-', ' '], "_");
    Some(match word.as_str() {
        "pending" | "todo" | "to_do" | "not_started" | "open" | "new" | "ready" | "planned"
        | "backlog" | "spec_ready" | "fail" | "failed" | "failing" | "pendente" | "" => {
            FeatureStatus::Pending
        }
        "in_progress" | "inprogress" | "doing" | "started" | "active" | "wip" | "review"
        | "in_review" | "em_andamento" => FeatureStatus::InProgress,
        "completed" | "complete" | "done" | "pass" | "passed" | "passing" | "finished"
        | "closed" | "concluida" | "concluída" => FeatureStatus::Completed,
        "blocked" | "on_hold" | "deferred" | "bloqueada" | "deprecated" | "deprecada"
        | "cancelled" | "canceled" | "skipped" | "wontfix" => FeatureStatus::Blocked,
        _ => return None,
    })
}

/// The priority of a word; an entry without one has 0, like `medium` and `P2`.
pub(crate) fn priority_of_word(word: &str) -> Option<i64> {
    Some(match word.trim().to_lowercase().as_str() {
        "p0" | "critical" | "urgent" | "highest" | "crítica" => 2,
        "p1" | "high" | "alta" => 1,
        "p2" | "medium" | "normal" | "média" | "media" => 0,
        "p3" | "low" | "baixa" => -1,
        "p4" | "lowest" => -2,
        _ => return None,
    })
}

/// The status that an entry claims.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Claim {
    pub(super) status: FeatureStatus,
    pub(super) passes: bool,
    pub(super) last_tested: Option<String>,
}

/// Reads the claim of an entry; values of the wrong type are ignored.
pub(super) fn claim(entry: &Map<String, Value>) -> Claim {
    let value = |keys: &[&str]| spelling(entry, keys).and_then(|key| entry.get(key));
    let word = value(&STATUS_KEYS).and_then(Value::as_str);
    let passes = value(&PASSES_KEYS).and_then(Value::as_bool);
    let deprecated = entry.get("deprecated").and_then(Value::as_bool).unwrap_or(false);
    let status = match (word, passes) {
        _ if deprecated => FeatureStatus::Blocked,
        (Some(word), _) => status_of_word(word).unwrap_or_default(),
        (None, Some(true)) => FeatureStatus::Completed,
        (None, _) => FeatureStatus::Pending,
    };
    Claim {
        status,
        passes: passes.unwrap_or(status == FeatureStatus::Completed),
        last_tested: value(&TESTED_KEYS).and_then(Value::as_str).map(str::to_owned),
    }
}
