//! The run of the project for the files: its published view, and its events for the whole project.

use longhaul_engine::{Event, EventKind, Payload, RunId};
use longhaul_workflows::backlog::{FeatureId, FeatureStatus};
use longhaul_workflows::narrative::{Entry, Kind, by};
use longhaul_workflows::project::{FeatureView, ProjectSummary};
use longhaul_workflows::projection::ProjectView;

use super::timeline::{Key, TimelineEntry};

/// The project.
#[derive(Debug)]
pub(super) struct ProjectRun {
    pub(super) id: RunId,
    pub(super) view: ProjectView,
    /// The entries since they were last taken.
    pub(super) entries: Vec<TimelineEntry>,
    /// Passed and total features: each change since it was last taken.
    pub(super) counted: Vec<(Key, usize, usize)>,
}

impl ProjectRun {
    pub(super) fn new(id: RunId) -> Self {
        Self { id, view: ProjectView::default(), entries: Vec::new(), counted: Vec::new() }
    }

    /// Applies the next event. `told_by_run`: whether the feature's run has already reported why it
    /// is blocked.
    pub(super) fn apply(&mut self, event: &Event, told_by_run: impl Fn(&FeatureView) -> bool) {
        match &event.kind {
            EventKind::StatusPublished { key, value, .. } => {
                self.take_value(event, key, value, told_by_run);
            }
            EventKind::RunPaused(request) => {
                self.add_entry(
                    event,
                    None,
                    Kind::Paused,
                    format!("the project is paused{}", by(request)),
                );
            }
            EventKind::RunResumed(request) => {
                self.add_entry(
                    event,
                    None,
                    Kind::Resumed,
                    format!("the project is resumed{}", by(request)),
                );
            }
            _ => {}
        }
    }

    fn take_value(
        &mut self,
        event: &Event,
        key: &str,
        value: &Payload,
        told_by_run: impl Fn(&FeatureView) -> bool,
    ) {
        let feature = key.strip_prefix(FeatureView::PREFIX).and_then(|id| FeatureId::new(id).ok());
        let before = feature.as_ref().and_then(|id| self.view.feature(id)).cloned();
        let summary = if key == ProjectSummary::KEY { self.view.summary.clone() } else { None };
        self.view.apply(key, value);
        if key == ProjectSummary::KEY {
            self.compare(event, summary.as_ref());
        }
        let blocked = |view: &FeatureView| view.status == FeatureStatus::Blocked;
        if let Some(id) = feature
            && let Some(now) =
                self.view.feature(&id).filter(|now| blocked(now) && !told_by_run(now))
            && !before.is_some_and(|before| blocked(&before) && before.reason == now.reason)
        {
            let reason = now.reason.clone().unwrap_or_default();
            self.add_entry(event, Some(id), Kind::FeatureBlocked, reason);
        }
    }

    fn compare(&mut self, event: &Event, before: Option<&ProjectSummary>) {
        let Some(now) = self.view.summary.clone() else { return };
        let counts = |summary: &ProjectSummary| (summary.passed, summary.features);
        if now.features > 0 && before.map(counts) != Some(counts(&now)) {
            self.counted.push((self.key(event, 0), now.passed, now.features));
        }
        match (before.and_then(|before| before.halted.as_ref()), &now.halted) {
            (None, Some(request)) => {
                self.add_entry(
                    event,
                    None,
                    Kind::Paused,
                    format!("the project is halted{}", by(request)),
                );
            }
            (Some(_), None) => {
                self.add_entry(event, None, Kind::Resumed, "the project is resumed".to_owned());
            }
            _ => {}
        }
        if let Some(problem) = &now.problem
            && before.and_then(|before| before.problem.as_ref()) != Some(problem)
        {
            self.add_entry(event, None, Kind::ListProblem, problem.clone());
        }
    }

    fn key(&self, event: &Event, nth: u8) -> Key {
        Key { at: event.at, run: self.id.clone(), position: event.position, nth }
    }

    fn add_entry(&mut self, event: &Event, feature: Option<FeatureId>, kind: Kind, text: String) {
        let before = self.entries.last().filter(|entry| entry.key.position == event.position);
        let nth = before.map_or(0, |entry| entry.key.nth + 1);
        let session = feature.as_ref().map_or_else(|| self.id.to_string(), ToString::to_string);
        let entry = Entry::new(kind, text);
        self.entries.push(TimelineEntry { key: self.key(event, nth), feature, session, entry });
    }
}
