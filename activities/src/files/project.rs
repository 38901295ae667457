//! The run of the project, folded from its events: what it has published, and what happened to the project as a whole.

use std::collections::BTreeMap;

use longhaul_engine::{Event, EventKind, Payload, RunId};
use longhaul_workflows::backlog::{FeatureId, FeatureStatus};
use longhaul_workflows::project::{BacklogView, FeatureView, ProjectView};

use super::happening::{Happening, Key, Kind};
use super::run::read;
use super::words;

/// What the project says of itself.
#[derive(Debug)]
pub(super) struct ProjectRun {
    pub(super) id: RunId,
    pub(super) view: Option<ProjectView>,
    /// Ids and names, in the order of the list.
    pub(super) backlog: Vec<(FeatureId, String)>,
    pub(super) features: BTreeMap<FeatureId, FeatureView>,
    /// What happened since it was asked last.
    pub(super) told: Vec<Happening>,
    /// How many features pass, of how many: each change of it since it was asked last.
    pub(super) counted: Vec<(Key, usize, usize)>,
}

impl ProjectRun {
    pub(super) fn new(id: RunId) -> Self {
        Self { id, view: None, backlog: Vec::new(), features: BTreeMap::new(), told: Vec::new(), counted: Vec::new() }
    }

    /// What is known of a feature; `None`: it is simply pending.
    pub(super) fn feature(&self, id: &FeatureId) -> Option<&FeatureView> {
        self.features.get(id)
    }

    /// Takes the next event in. `told_by_run` says whether the run of a feature has told already why it is blocked.
    pub(super) fn apply(&mut self, event: &Event, told_by_run: impl Fn(&FeatureView) -> bool) {
        match &event.kind {
            EventKind::StatusPublished { key, value, .. } if key == ProjectView::KEY => self.take_view(event, value),
            EventKind::StatusPublished { key, value, .. } if key == BacklogView::KEY => {
                if let Some(backlog) = read::<BacklogView>(&self.id, event, value) {
                    self.backlog = backlog.features.into_iter().map(|feature| (feature.id, feature.name)).collect();
                }
            }
            EventKind::StatusPublished { key, value, .. } => {
                let id = key.strip_prefix(FeatureView::PREFIX).and_then(|id| FeatureId::new(id).ok());
                if let Some(id) = id {
                    self.take_feature(event, id, value, told_by_run);
                }
            }
            EventKind::RunPaused(request) => {
                self.tell(event, Kind::Paused, words::asked("The project is paused", request));
            }
            EventKind::RunResumed(request) => {
                self.tell(event, Kind::Resumed, words::asked("The project goes on", request));
            }
            _ => {}
        }
    }

    fn take_view(&mut self, event: &Event, value: &Payload) {
        let Some(view) = read::<ProjectView>(&self.id, event, value) else { return };
        let before = self.view.take();
        let counts = |view: &ProjectView| (view.passed, view.features);
        if view.features > 0 && before.as_ref().map(counts) != Some(counts(&view)) {
            self.counted.push((self.key(event, 0), view.passed, view.features));
        }
        match (before.as_ref().and_then(|before| before.halted.as_ref()), &view.halted) {
            (None, Some(request)) => self.tell(event, Kind::Paused, words::asked("The project is halted", request)),
            (Some(_), None) => self.tell(event, Kind::Resumed, "The project goes on".to_owned()),
            _ => {}
        }
        if let Some(problem) = &view.problem
            && before.and_then(|before| before.problem).as_ref() != Some(problem)
        {
            self.tell(event, Kind::ListProblem, problem.clone());
        }
        self.view = Some(view);
    }

    fn take_feature(
        &mut self,
        event: &Event,
        id: FeatureId,
        value: &Payload,
        told_by_run: impl Fn(&FeatureView) -> bool,
    ) {
        if *value == Payload::null() {
            self.features.remove(&id);
            return;
        }
        let Some(view) = read::<FeatureView>(&self.id, event, value) else { return };
        let blocked = |view: &FeatureView| view.status == FeatureStatus::Blocked;
        let was_blocked = self.features.get(&id).is_some_and(|before| blocked(before) && before.reason == view.reason);
        if blocked(&view) && !was_blocked && !told_by_run(&view) {
            self.tell(event, Kind::FeatureBlocked, view.reason.clone().unwrap_or_default());
            if let Some(told) = self.told.last_mut() {
                told.feature = Some(id.clone());
                told.session = id.to_string();
            }
        }
        self.features.insert(id, view);
    }

    fn key(&self, event: &Event, nth: u8) -> Key {
        Key { at: event.at, run: self.id.clone(), position: event.position, nth }
    }

    fn tell(&mut self, event: &Event, kind: Kind, text: String) {
        let before = self.told.last().filter(|told| told.key.position == event.position);
        let nth = before.map_or(0, |told| told.key.nth + 1);
        self.told.push(Happening {
            key: self.key(event, nth),
            kind,
            feature: None,
            session: self.id.to_string(),
            text,
            commit: None,
            step: None,
        });
    }
}
