//! Finished work that waits on `longhaul/next`.
//!
//! If the target branch has moved on meanwhile, no gate has passed on a merge of both. One of the
//! waiting features is then checked again, as a claim, on that merge. Its lease has the checks of the
//! others, so the merge lands only if all of them pass on it.

use crate::backlog::{FeatureId, FeatureState};

use super::state::ProjectRun;

impl ProjectRun {
    /// Takes the reason of the last landing or follow. `None`: nothing waits any more.
    pub(super) fn take_waits(&mut self, waits_on_next: Option<String>) {
        if waits_on_next.is_none() {
            self.records.values_mut().for_each(|record| record.waits = false);
        }
        self.waits_on_next = waits_on_next;
    }

    /// Begins to check the merge of the target and `longhaul/next`, unless a waiting feature is
    /// already in progress, or was blocked in that.
    pub(super) fn check_merge(&mut self) {
        let waiting = self.waiting();
        let passed = |id: &&FeatureId| self.backlog.state(id) == Some(&FeatureState::Passed);
        if !waiting.iter().all(|id| passed(&id)) {
            return;
        }
        if let Some(id) = waiting.first() {
            self.record(id).claimed = true;
            self.put_back(id);
        }
    }

    /// The listed features whose work waits.
    pub(super) fn waiting(&self) -> Vec<FeatureId> {
        let waiting = self.records.iter().filter(|(_, record)| record.waits);
        let listed = waiting.filter(|(id, _)| self.backlog.state(id).is_some());
        listed.map(|(id, _)| id.clone()).collect()
    }
}
