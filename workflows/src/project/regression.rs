//! The finished features that a merge could break.

use longhaul_engine::RunId;
use std::collections::BTreeSet;

use crate::backlog::{FeatureId, FeatureState};
use crate::feature::{MergeLease, MergeRequest, PassRefuted, RegressionCheck};
use crate::finding::Finding;
use crate::settings::Regression;

use super::state::ProjectRun;

/// The checks of finished features to repeat on the merged result, without duplicate commands.
fn checks(memory: &ProjectRun, request: &MergeRequest) -> Vec<RegressionCheck> {
    let scope = memory.settings.merge.regression;
    let checks_waiting = memory.waiting.contains(&request.feature);
    let touched: BTreeSet<&str> = request.files.iter().map(String::as_str).collect();
    let could_break = |id: &FeatureId| match scope {
        _ if checks_waiting && memory.waiting.contains(id) => true,
        // A claim changes no files.
        Regression::All => !touched.is_empty(),
        Regression::Touched => memory
            .records
            .get(id)
            .is_some_and(|record| record.files.iter().any(|file| touched.contains(file.as_str()))),
        Regression::None => false,
    };
    let mut known = BTreeSet::new();
    let passed = memory.backlog.iter().filter(|(_, state)| **state == FeatureState::Passed);
    let broken = passed.filter(|(feature, _)| could_break(&feature.id));
    broken
        .flat_map(|(feature, _)| feature.checks.iter().map(|check| (&feature.id, check)))
        .filter(|(_, check)| known.insert(check.run.as_str()))
        .map(|(id, check)| RegressionCheck { feature: id.clone(), check: check.clone() })
        .collect()
}

impl ProjectRun {
    /// A finished feature fails on the target itself: its pass becomes a claim, and its next run
    /// repairs it.
    pub(super) fn take_refuted(&mut self, refuted: PassRefuted) {
        let PassRefuted { feature, check, commit } = refuted;
        if self.backlog.state(&feature) != Some(&FeatureState::Passed) {
            return;
        }
        self.ask_again(&feature);
        self.note_finding(Finding::PassRefuted { feature, check, commit });
    }

    /// The next run that merges, with its lease.
    pub(super) fn next_lease(&mut self) -> Option<(RunId, MergeLease)> {
        let held = self.held_features();
        let waiting = self.queue.waiting().filter(|ready| !self.may_merge(ready));
        let kept_back: BTreeSet<FeatureId> = waiting.map(|ready| ready.feature.clone()).collect();
        let (ready, tree) =
            self.queue.next(|id| held.contains(id), |id| !kept_back.contains(id))?;
        let run = self.run_of(&ready.feature)?;
        let counts = self.backlog.counts();
        let is_last = counts.in_progress <= 1 && counts.workable == 0;
        let mark = self.marks.begin(&ready.feature, counts.total(), is_last);
        Some((run, MergeLease { regression: checks(self, &ready), tree, mark }))
    }
}
