//! Whether finished work has landed, read from the repository: people merge by hand, too.

use std::path::Path;

use longhaul_activities::git;
use longhaul_workflows::projection::ProjectState;

use super::StatusDocument;

impl StatusDocument {
    /// Corrects the recorded reason for which finished work waits on `longhaul/next`.
    pub(crate) async fn read_landing(&mut self) {
        if self.waits_on_next.is_none() || self.target.is_empty() {
            return;
        }
        // A repository that cannot be read proves nothing.
        if let Ok(false) = git::is_work_waiting(Path::new(&self.root), &self.target).await {
            self.waits_on_next = None;
            let is_done = self.status == ProjectState::NeedsAttention
                && self.counts.is_all_passed()
                && self.problem.is_none();
            if is_done {
                self.status = ProjectState::Done;
            }
            self.reason = self.why();
        }
    }
}
