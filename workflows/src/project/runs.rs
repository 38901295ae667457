//! The runs of features. A feature has one run at a time: the next one starts after the previous
//! one has ended, whatever the cause.

use longhaul_engine::{Outcome, RequestedBy, RunId, Stop};

use crate::backlog::{BlockCause, Check, FeatureId, FeatureState};
use crate::feature::{FeatureOutcome, FeatureRunId};
use crate::resources::Resources;

use super::record::{ActiveRun, PendingSend};
use super::state::{NO_CHECK, ProjectRun, refused};

/// The most landings remembered besides those of the features: the state is copied at each
/// continue-as-new.
const MOST_LANDED: usize = 100;

/// A pass as reported by a feature run.
struct ReportedPass {
    commit: String,
    files: Vec<String>,
    checks: Vec<Check>,
    by_claim: bool,
    waits: bool,
}

impl ProjectRun {
    /// The next feature to start, if the limits allow one.
    pub(super) fn next_to_start(&mut self) -> Option<FeatureId> {
        if !self.has_room() || !self.is_synced() || self.halted.is_some() || self.rollback.is_some()
        {
            return None;
        }
        loop {
            let next = self.next_apart()?.clone();
            let has_checks =
                self.backlog.feature(&next).is_some_and(|feature| !feature.checks.is_empty());
            if has_checks || !self.settings.gates.is_empty() {
                return Some(next);
            }
            self.block(&next, BlockCause::NoCheck, NO_CHECK);
        }
    }

    /// Marks a feature as begun; returns the id of its new run. Run numbers are never reused.
    pub(super) fn begin(&mut self, id: &FeatureId) -> Result<RunId, Stop> {
        self.admission.begin(id);
        let record = self.record(id);
        record.runs += 1;
        let number = record.runs;
        self.current.insert(id.clone(), ActiveRun { number, ..ActiveRun::default() });
        self.set(id, FeatureState::InProgress);
        self.run_of(id).ok_or_else(|| refused("its run has no valid id"))
    }

    /// The run of a feature: the active one, else the last.
    pub(super) fn run_of(&self, id: &FeatureId) -> Option<RunId> {
        let last = || self.records.get(id).map(|record| record.runs).filter(|runs| *runs > 0);
        let number = self.current.get(id).map(|current| current.number).or_else(last)?;
        self.run(id, number)
    }

    pub(super) fn run(&self, id: &FeatureId, number: u32) -> Option<RunId> {
        RunId::new(format!("{}/{id}/{number}", self.project.id)).ok()
    }

    /// The feature whose current run this is. Messages of other runs do not count for a feature.
    pub(super) fn feature_of(&self, run: &RunId) -> Option<FeatureId> {
        self.feature_with(run).filter(|feature| self.run_of(feature).as_ref() == Some(run))
    }

    /// The feature whose current run this is, or is above it.
    pub(super) fn feature_with(&self, run: &RunId) -> Option<FeatureId> {
        let FeatureRunId { feature, number, .. } =
            FeatureRunId::of(run).filter(|id| id.is_of(&self.project.id))?;
        (self.current.get(&feature)?.number == number).then_some(feature)
    }

    /// Whether the run of a feature was cancelled.
    pub(super) fn is_ending(&self, id: &FeatureId) -> bool {
        self.current.get(id).is_some_and(|current| current.ending)
    }

    /// Cancels the run of a feature, if it has one.
    pub(super) fn end_run(&mut self, id: &FeatureId, why: &str) {
        let Some(current) = self.current.get_mut(id).filter(|current| !current.ending) else {
            return;
        };
        current.ending = true;
        self.queue.stop_waiting(id);
        if let Some(run) = self.run_of(id) {
            self.outbox.push(PendingSend::Cancel(run, RequestedBy::longhaul(why)));
        }
    }

    /// Applies the outcome of a run. Only the current run of a feature counts.
    pub(super) fn take_outcome(&mut self, run: &RunId, outcome: Outcome) {
        if let Some(feature) = self.feature_of(run) {
            self.take_outcome_of(&feature, outcome);
            let has_passed = self.backlog.state(&feature) == Some(&FeatureState::Passed);
            self.marks.end(&feature, has_passed);
            self.admission.leave(&feature);
            self.end_admission(&feature);
        }
    }

    fn take_outcome_of(&mut self, feature: &FeatureId, outcome: Outcome) {
        let was_ending = self.is_ending(feature);
        let current = self.current.remove(feature);
        // A run that completes reports its use.
        self.record(feature).used += current.map(|current| current.used).unwrap_or_default();
        self.queue.leave(feature);
        self.changed.insert(feature.clone());
        let record = self.record(feature);
        record.may_have_landed |= !matches!(outcome, Outcome::Completed(_));
        let result = match outcome {
            Outcome::Completed(output) => {
                output.read::<FeatureOutcome>().map_err(|error| error.to_string())
            }
            Outcome::Failed(failure) => Err(failure.message),
            Outcome::Cancelled if was_ending => {
                return self.return_to_pending_if_in_progress(feature);
            }
            Outcome::Cancelled => {
                let reason = "its run was cancelled".to_owned();
                return self.block_if_in_progress(feature, BlockCause::Cancelled, reason);
            }
        };
        match result {
            // Also after a cancellation: the commit is on the target.
            Ok(FeatureOutcome::Passed {
                commit,
                waits_on_next,
                progress,
                files,
                checks,
                claim,
            }) => {
                self.note_progress(feature, &progress);
                let waits = waits_on_next.is_some();
                self.pass(feature, ReportedPass { commit, files, checks, by_claim: claim, waits });
                self.take_waits(waits_on_next);
            }
            Ok(FeatureOutcome::Blocked { block, progress }) => {
                self.note_progress(feature, &progress);
                self.block_if_in_progress(feature, BlockCause::Run, block.to_string());
                let record = self.record(feature);
                record.over_limit = block.reason.over_limit();
                record.unready = block.reason.is_unready();
                // The failed step may have come after the landing.
                record.may_have_landed |= record.unready;
            }
            Err(reason) => self.block_if_in_progress(feature, BlockCause::Run, reason),
        }
    }

    /// Blocks the feature, unless a person has changed its state since the run started.
    fn block_if_in_progress(&mut self, id: &FeatureId, cause: BlockCause, reason: String) {
        if self.backlog.state(id) == Some(&FeatureState::InProgress) {
            self.block(id, cause, reason);
        }
    }

    fn return_to_pending_if_in_progress(&mut self, id: &FeatureId) {
        if self.backlog.state(id) == Some(&FeatureState::InProgress) {
            self.return_to_pending(id);
        }
    }

    /// A feature passes if the passed checks are those of the list; else the pass is a claim.
    fn pass(&mut self, id: &FeatureId, pass: ReportedPass) {
        let ReportedPass { commit, files, checks, by_claim, waits } = pass;
        let feature = self.backlog.feature(id);
        let is_for_these = feature
            .is_none_or(|feature| self.settings.gates.iter().chain(&feature.checks).eq(&checks));
        // Work that waited was checked again on a merge with the target: its own commit counts.
        let is_again = by_claim && self.waiting.contains(id);
        if waits {
            self.waiting.insert(id.clone());
        }
        let record = self.record(id);
        if !is_again {
            record.commit = Some(commit.clone());
            record.by_claim = by_claim;
        }
        record.used = Resources::default();
        record.claimed = !is_for_these;
        record.invalidated = None;
        record.called_done = false;
        record.may_have_landed = false;
        if !files.is_empty() {
            record.files = files;
        }
        self.landed =
            self.landed.take().filter(|landed| landed.len() < MOST_LANDED).map(|mut landed| {
                landed.push(commit);
                landed
            });
        self.followed = false;
        if is_for_these {
            self.set(id, FeatureState::Passed);
        } else {
            self.return_to_pending(id);
        }
    }
}
