//! Finished work that waits on `longhaul/next`.
//!
//! If the target branch has moved on meanwhile, no gate has passed on a merge of both. One of the
//! waiting features is then checked again, as a claim, on that merge. Its lease has the checks of
//! the others, so the merge lands only if all of them pass on it.

use crate::backlog::{FeatureId, FeatureState};

use super::state::ProjectRun;

impl ProjectRun {
    /// Takes the reason of the last landing or follow. `None`: nothing waits any more.
    pub(super) fn take_waits(&mut self, waits_on_next: Option<String>) {
        if waits_on_next.is_none() {
            self.waiting.clear();
        }
        self.waits_on_next = waits_on_next;
    }

    /// Whether work that waits may land as it is. If not, a landing of the edited features moves
    /// it.
    pub(super) fn may_follow(&self) -> bool {
        self.waits_on_next.is_some() && self.edited_waiting().next().is_none()
    }

    /// The waiting features that were edited since they passed.
    fn edited_waiting(&self) -> impl Iterator<Item = &FeatureId> {
        let has_passed = |state: &FeatureState| *state == FeatureState::Passed;
        self.waiting.iter().filter(move |id| !self.backlog.state(id).is_none_or(has_passed))
    }

    /// Names the features for which the rest waits, once they were edited.
    pub(super) fn note_edited_waiting(&mut self) {
        let edited: Vec<&str> = self.edited_waiting().map(FeatureId::as_str).collect();
        if self.waits_on_next.is_some() && !edited.is_empty() {
            let edited = edited.join(", ");
            self.waits_on_next = Some(format!(
                "{edited} was edited since it passed; all lands when it passes again"
            ));
        }
    }

    /// Begins to check the merge of the target and `longhaul/next`, unless a waiting feature is
    /// already in progress, or was blocked in that.
    pub(super) fn check_merge(&mut self) {
        // The work of a removed feature lands with that of the others.
        let listed: Vec<&FeatureId> =
            self.waiting.iter().filter(|id| self.backlog.state(id).is_some()).collect();
        if listed.iter().any(|id| self.backlog.state(id) != Some(&FeatureState::Passed)) {
            return;
        }
        if let Some(id) = listed.first().copied().cloned() {
            self.record(&id).claimed = true;
            self.return_to_pending(&id);
        }
    }
}
