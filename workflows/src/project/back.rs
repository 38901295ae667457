//! Taking back: features that are forked, and what was built on top of them.

use longhaul_engine::RequestedBy;
use serde::{Deserialize, Serialize};

use crate::backlog::{FeatureId, FeatureState};

use super::memory::Memory;
use super::runs::Current;

/// The signal `fork`: a feature was given a new run that goes on from an earlier step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Forked {
    /// The feature.
    pub feature: FeatureId,
    /// The number of the new run; it exists already.
    pub run: u32,
    /// How many sessions of an earlier run are in its history.
    pub sessions: u32,
    /// Who asked for it, and why.
    pub request: RequestedBy,
}

impl Forked {
    /// The name of the signal.
    pub const SIGNAL: &'static str = "fork";
}

/// The content of the signal `unblock`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Unblock {
    /// The feature.
    Feature(FeatureId),
    /// The feature, and who asked for it.
    Asked {
        /// The feature.
        feature: FeatureId,
        /// Who asked for it, and why.
        request: RequestedBy,
    },
}

impl Unblock {
    /// The feature.
    pub fn feature(&self) -> &FeatureId {
        match self {
            Self::Feature(feature) | Self::Asked { feature, .. } => feature,
        }
    }
}

impl Memory {
    /// A feature has a run that began without us: it is in progress, and what was built on it is
    /// asked again. The run of a feature that is not in the list ends.
    pub(super) fn take_fork(&mut self, forked: &Forked) {
        let id = &forked.feature;
        self.current.insert(id.clone(), Current { number: forked.run, ending: false });
        self.queue.leave(id);
        if let Some(gone) = self.gone.get_mut(id) {
            gone.record.runs = gone.record.runs.max(forked.run);
        }
        if self.backlog.state(id).is_none() {
            return self.end_run(id, "the feature is not in the list");
        }
        self.admissions.leave(id);
        self.admissions.begin_anew(id);
        let record = self.record(id);
        record.runs = record.runs.max(forked.run);
        // They are counted again with those of the new run.
        record.sessions = record.sessions.saturating_sub(forked.sessions);
        record.claimed = false;
        record.invalidated = None;
        self.set(id, FeatureState::InProgress);
        self.invalidate_below(id);
    }

    /// What passed on top of a feature that is taken back is only a claim now.
    pub(super) fn invalidate_below(&mut self, root: &FeatureId) {
        let mut open = self.backlog.dependents(root);
        let mut seen = std::collections::BTreeSet::from([root.clone()]);
        while let Some(id) = open.pop() {
            if !seen.insert(id.clone()) {
                continue;
            }
            open.extend(self.backlog.dependents(&id));
            if self.backlog.state(&id) == Some(&FeatureState::Passed) {
                self.set(&id, FeatureState::Pending);
                let record = self.record(&id);
                record.claimed = true;
                record.invalidated = Some(root.clone());
            }
        }
    }
}
