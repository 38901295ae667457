//! Applying the list and the settings: features that are new, edited, removed or restored.

use crate::backlog::{BlockCause, Feature, FeatureId, FeatureState, FeatureStatus};
use crate::contracts::{LoadInput, LoadedBacklog};
use crate::feature::Edited;
use crate::finding::Finding;
use crate::settings::Settings;

use super::record::{PendingSend, Record, RemovedFeature};
use super::state::ProjectRun;

/// Whether these fields change the requirements.
fn changes_the_question(fields: &[&str]) -> bool {
    fields.iter().any(|field| !matches!(*field, "priority" | "depends_on" | "extra"))
}

/// Whether these fields ask for other work. Edited checks do not: they show whether the work that
/// is there suffices.
pub fn changes_the_work(fields: &[&str]) -> bool {
    changes_the_question(fields)
        && fields.iter().any(|field| !matches!(*field, "checks" | "approval"))
}

impl ProjectRun {
    pub(super) fn load_input(&self) -> LoadInput {
        let landed = self.landed.clone().unwrap_or_else(|| self.passed_commits());
        LoadInput { project: self.project.clone(), target: self.target.clone(), landed }
    }

    fn passed_commits(&self) -> Vec<String> {
        let passed = self.records.values().filter(|record| record.state == FeatureState::Passed);
        passed.filter_map(|record| record.commit.clone()).collect()
    }

    /// A feature whose commit is no longer in the target has not passed. Its pass becomes a claim,
    /// because the work may be there under another commit.
    fn take_lost(&mut self, lost: &[String]) {
        let is_lost =
            |record: &Record| record.commit.as_ref().is_some_and(|commit| lost.contains(commit));
        let features =
            self.records.iter().filter(|(_, record)| is_lost(record)).map(|(id, _)| id.clone());
        for id in features.collect::<Vec<_>>() {
            self.record(&id).commit = None;
            self.ask_again(&id);
        }
    }

    /// Applies the current list; on an error nothing has changed.
    pub(super) fn take_backlog(&mut self, loaded: LoadedBacklog) -> Result<(), String> {
        let settings = self.overrides.apply(loaded.settings)?;
        let changes = self.backlog.update(loaded.features).map_err(|error| error.to_string())?;
        let has_other_gates =
            settings.gates != self.settings.gates || settings.baseline != self.settings.baseline;
        let has_new_gates = settings.gates.iter().any(|gate| !self.settings.gates.contains(gate));
        self.note_settings(&settings);
        let has_other_limits =
            settings.limits != self.settings.limits || settings.budget != self.settings.budget;
        self.settings = settings;
        if has_other_limits {
            self.retry_over_limit();
        }
        self.list_file = loaded.list_file;
        if !self.is_synced() || self.settings.project.target.is_some() {
            self.target = loaded.target;
        }
        if let Some(tip) = loaded.tip {
            self.take_lost(&loaded.lost);
            self.landed = Some(vec![tip]);
        }
        for (feature, state) in changes.removed {
            self.take_removed(feature, state);
        }
        for feature in &changes.added {
            self.take_added(feature);
        }
        for (feature, fields) in &changes.edited {
            if changes_the_question(fields) {
                self.note_edit(feature, fields);
                if changes_the_work(fields) {
                    self.record(feature).called_done = false;
                }
                self.ask_again(feature);
                self.send_edit(feature);
            }
        }
        if has_other_gates {
            let at_work: Vec<FeatureId> = self.current.keys().cloned().collect();
            for feature in &at_work {
                self.send_edit(feature);
            }
        }
        if has_new_gates {
            self.judge_gates();
        }
        Ok(())
    }

    /// Features that had reached a limit of resources are tried with the new limits.
    fn retry_over_limit(&mut self) {
        let over = self.records.iter().filter(|(_, record)| record.over_limit.is_some());
        for id in over.map(|(id, _)| id.clone()).collect::<Vec<_>>() {
            self.unblock(&id);
        }
    }

    /// A person may have written the missing file, installed the program, or corrected the set-up
    /// since. If not, the feature is blocked again before a session is paid.
    pub(super) fn retry_unready(&mut self) {
        let unready = self.records.iter().filter(|(_, record)| record.unready);
        for id in unready.map(|(id, _)| id.clone()).collect::<Vec<_>>() {
            self.unblock(&id);
        }
    }

    /// The user may edit the settings at any time; an agent without a sandbox could do so too.
    fn note_settings(&mut self, settings: &Settings) {
        let during: Vec<FeatureId> = self.current.keys().cloned().collect();
        let edited = [
            ("gates", settings.gates != self.settings.gates),
            ("baseline", settings.baseline != self.settings.baseline),
            ("protected", settings.protected() != self.settings.protected()),
            (
                "hidden_checks",
                settings.project.hidden_checks != self.settings.project.hidden_checks,
            ),
        ];
        for (setting, _) in
            edited.into_iter().filter(|(_, is_edited)| *is_edited && !during.is_empty())
        {
            self.note_finding(Finding::SettingsEdited {
                setting: setting.to_owned(),
                during: during.clone(),
            });
        }
    }

    fn note_edit(&mut self, feature: &FeatureId, fields: &[&'static str]) {
        let during: Vec<FeatureId> = self.current.keys().cloned().collect();
        if !during.is_empty() {
            let fields = fields.iter().map(|field| (*field).to_owned()).collect();
            self.note_finding(Finding::ListEdited { feature: feature.clone(), fields, during });
        }
    }

    fn take_removed(&mut self, feature: Feature, state: FeatureState) {
        let id = feature.id.clone();
        self.end_run(&id, "the feature was removed from the list");
        let mut record = self.records.remove(&id).unwrap_or_default();
        record.state =
            if state == FeatureState::InProgress { FeatureState::Pending } else { state };
        if record != Record::default() {
            self.gone.insert(id.clone(), RemovedFeature { feature, record });
        }
        self.changed.insert(id);
    }

    fn take_added(&mut self, id: &FeatureId) {
        match self.gone.remove(id) {
            Some(gone) => self.restore_removed(id, gone),
            None => self.take_claim(id),
        }
    }

    /// A restored feature keeps its state, except that a pass becomes a claim, and that other
    /// checks are an edit. One that asks for other work is another feature, and its old state is
    /// dropped.
    fn restore_removed(&mut self, id: &FeatureId, gone: RemovedFeature) {
        let Some(feature) = self.backlog.feature(id) else { return };
        let RemovedFeature { feature: old, mut record } = gone;
        let fields = old.differing_fields(feature);
        if changes_the_work(&fields) {
            let new =
                Record { runs: record.runs, anew: Some(record.runs + 1), ..Record::default() };
            self.records.insert(id.clone(), new);
            self.changed.insert(id.clone());
            return self.take_claim(id);
        }
        let state = std::mem::take(&mut record.state);
        record.claimed |= state == FeatureState::Passed;
        let has_begun = record.runs > 0;
        self.records.insert(id.clone(), record);
        self.changed.insert(id.clone());
        match state {
            FeatureState::Blocked(block) if !changes_the_question(&fields) => {
                self.set(id, FeatureState::Blocked(block));
            }
            _ if has_begun => self.return_to_pending(id),
            _ => {}
        }
    }

    /// The listed state of a new feature: a claim at most.
    fn take_claim(&mut self, id: &FeatureId) {
        let Some(feature) = self.backlog.feature(id) else {
            return;
        };
        let claimed = feature.passes || feature.status == FeatureStatus::Completed;
        let blocked = feature.status == FeatureStatus::Blocked;
        if claimed {
            self.record(id).claimed = true;
        } else if blocked {
            self.block(id, BlockCause::List, "the feature list says that it is blocked");
        }
    }

    /// The next run checks the work of the last one before it pays for a session.
    pub(super) fn note_called_done(&mut self, id: &FeatureId) {
        if self.backlog.state(id).is_some_and(|state| *state != FeatureState::Passed) {
            self.record(id).called_done = true;
        }
    }

    /// The requirements or the target have changed: an earlier pass becomes a claim.
    pub(super) fn ask_again(&mut self, id: &FeatureId) {
        match self.backlog.state(id) {
            Some(FeatureState::Passed) => {
                self.record(id).claimed = true;
                self.set(id, FeatureState::Pending);
            }
            Some(FeatureState::Blocked(_)) => self.set(id, FeatureState::Pending),
            _ => {}
        }
    }

    /// Makes new gates run once on the target. They apply to the whole project, so one passed
    /// feature becomes a claim again: if a gate fails, an agent works on that feature until it
    /// passes. An open claim is checked with these gates anyway.
    fn judge_gates(&mut self) {
        let is_to_judge = |(id, state): (&Feature, &FeatureState)| {
            matches!(state, FeatureState::Pending | FeatureState::InProgress)
                && self.is_claimed(&id.id)
        };
        if self.backlog.iter().any(is_to_judge) {
            return;
        }
        let passed = self.backlog.iter().filter(|(_, state)| **state == FeatureState::Passed);
        if let Some(last) = passed.last().map(|(feature, _)| feature.id.clone()) {
            self.ask_again(&last);
        }
    }

    /// Answers a run that asked for the current version of its feature.
    pub(super) fn answer_edit(&mut self, id: &FeatureId) {
        let run = self.run_of(id);
        let is_told = |send: &PendingSend| matches!(send, PendingSend::Edited(told, _) if Some(told) == run.as_ref());
        if !self.outbox.iter().any(is_told) {
            self.send_edit(id);
        }
    }

    /// Sends the current version of a feature to its run.
    fn send_edit(&mut self, id: &FeatureId) {
        if self.is_ending(id) || !self.current.contains_key(id) {
            return;
        }
        if let (Some(run), Some(feature)) = (self.run_of(id), self.backlog.feature(id)) {
            let Settings { gates, baseline, .. } = self.settings.clone();
            let edited = Edited { feature: feature.clone(), gates, baseline };
            self.outbox.push(PendingSend::Edited(run, Box::new(edited)));
        }
    }
}
