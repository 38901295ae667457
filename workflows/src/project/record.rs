//! Records of features: their states, their active runs, and those removed from the list.

use longhaul_engine::{RequestedBy, RunId};
use serde::{Deserialize, Serialize};

use crate::backlog::{Feature, FeatureId, FeatureState};
use crate::feature::Edited;
use crate::finding::Findings;
use crate::resources::{Resource, Resources};

/// The state of a feature that is not simply pending.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
pub(super) struct Record {
    pub(super) state: FeatureState,
    /// The number of its last run, including runs of an earlier feature with its id.
    pub(super) runs: u32,
    /// The sessions of all these runs.
    pub(super) sessions: u32,
    /// The commit on which it passed.
    pub(super) commit: Option<String>,
    /// The files changed by its work.
    pub(super) files: Vec<String>,
    /// It is claimed to pass; its gates have not run on the target.
    pub(super) claimed: bool,
    /// It passed as claimed, without landing anything.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) by_claim: bool,
    /// The number of its first run, if an earlier feature had its id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) anew: Option<u32>,
    /// An agent called its work done, but the work has not landed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) called_done: bool,
    /// Its last run ended before its outcome was known, so the work may have landed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) may_have_landed: bool,
    /// A dependency that was invalidated after this feature passed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) invalidated: Option<FeatureId>,
    /// The resource at its limit, if it is blocked by that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) over_limit: Option<Resource>,
    /// It is blocked by a set-up or a check that could not succeed before a person acts.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) unready: bool,
    /// The resources used by its runs since it last passed, without those that a fork replaced.
    #[serde(default, skip_serializing_if = "Resources::is_zero")]
    pub(super) used: Resources,
    /// Findings about its last run.
    #[serde(default, skip_serializing_if = "Findings::is_empty")]
    pub(super) findings: Findings,
}

/// A message to a run.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum PendingSend {
    Cancel(RunId, RequestedBy),
    Edited(RunId, Box<Edited>),
}

/// A feature that was removed from the list, kept because it may return: by `git checkout` of
/// another commit, by a rollback, or as another feature with the same id. The numbers of its runs
/// are in the log and must not be reused.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct RemovedFeature {
    /// Its last version in the list.
    pub(super) feature: Feature,
    pub(super) record: Record,
}

/// The active run of a feature.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ActiveRun {
    /// Its number.
    pub(super) number: u32,
    /// Whether it was cancelled.
    pub(super) ending: bool,
    /// The resources used by its sessions.
    #[serde(default, skip_serializing_if = "Resources::is_zero")]
    pub(super) used: Resources,
}
