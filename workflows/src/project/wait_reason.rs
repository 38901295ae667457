//! Why a feature in progress waits.

use serde::{Deserialize, Serialize};

use crate::backlog::FeatureId;
use crate::feature::GivenUp;

/// Why a feature in progress waits for the project. [`narrative`](crate::narrative) has the text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum WaitReason {
    /// Its run is paused, parked or stuck.
    Held,
    /// Another feature repairs the baseline of the project.
    Repair {
        /// That feature.
        by: FeatureId,
        /// The feature that gave up on it before.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        earlier: Option<GivenUp>,
    },
    /// Another feature with the same files resolves its conflict.
    Resolving {
        /// That feature.
        other: FeatureId,
        /// Whether this one is finished and only has to merge.
        to_merge: bool,
    },
    /// As many features as `[project] parallel` allows are in progress.
    Places {
        /// Those features.
        taken_by: Vec<FeatureId>,
    },
    /// Sessions at work have reserved the rest of the budget.
    Reserved,
    /// Its agent fails.
    Agent {
        /// The failure.
        failure: String,
    },
}
