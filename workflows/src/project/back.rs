//! Forks of features, and the passes that they invalidate.

use longhaul_engine::RequestedBy;
use serde::{Deserialize, Serialize};

use crate::backlog::{FeatureId, FeatureState};

use super::record::ActiveRun;
use super::state::ProjectRun;

/// The signal `fork`: a feature has a new run that continues from an earlier step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Forked {
    /// The feature.
    pub feature: FeatureId,
    /// The number of the new run, which exists already.
    pub run: u32,
    /// The number of copied sessions in its history.
    pub sessions: u32,
    /// The requester and the reason.
    pub request: RequestedBy,
}

impl Forked {
    /// The name of the signal.
    pub const SIGNAL: &'static str = "fork";
}

impl ProjectRun {
    /// Handles a new run that was created by a fork: the feature is in progress, and its dependents
    /// are invalidated. The run of a feature that is not in the list ends.
    pub(super) fn take_fork(&mut self, forked: &Forked) {
        let id = &forked.feature;
        self.current.insert(id.clone(), ActiveRun { number: forked.run, ..ActiveRun::default() });
        self.queue.leave(id);
        if let Some(gone) = self.gone.get_mut(id) {
            gone.record.runs = gone.record.runs.max(forked.run);
        }
        if self.backlog.state(id).is_none() {
            return self.end_run(id, "the feature is not in the list");
        }
        self.admission.leave(id);
        self.admission.restart(id);
        let record = self.record(id);
        record.runs = record.runs.max(forked.run);
        // The new run counts them again.
        record.sessions = record.sessions.saturating_sub(forked.sessions);
        record.claimed = false;
        record.invalidated = None;
        self.set(id, FeatureState::InProgress);
        self.invalidate_below(id);
    }

    /// Turns the passes of dependents of an invalidated feature into claims.
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
