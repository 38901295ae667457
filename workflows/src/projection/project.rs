//! The states of features in the published state of a project.

use std::collections::HashMap;

use crate::backlog::{Feature, FeatureId, FeatureStatus};
use crate::project::ProjectView;

use super::state::State;

impl ProjectView {
    /// The state of a feature.
    pub fn state(&self, id: &FeatureId) -> State {
        self.state_with(id, || self.listed(id))
    }

    /// The state of a feature of the list. Unlike [`Self::state`], it does not search the list.
    pub fn state_of(&self, feature: &Feature) -> State {
        self.state_with(&feature.id, || Some(feature))
    }

    fn state_with<'a>(&'a self, id: &FeatureId, listed: impl Fn() -> Option<&'a Feature>) -> State {
        match self.feature(id) {
            Some(feature) if feature.passes => State::Passed,
            Some(feature) if feature.status == FeatureStatus::InProgress => State::Running,
            Some(feature) if feature.was_cancelled() => State::Cancelled,
            Some(feature) if feature.status == FeatureStatus::Blocked => State::Blocked,
            None if listed().is_some_and(|feature| {
                feature.status == FeatureStatus::Blocked && !feature.passes
            }) =>
            {
                State::Blocked
            }
            _ if listed().is_some_and(|feature| self.missing_of(feature).next().is_some()) => {
                State::Waiting
            }
            _ => State::Pending,
        }
    }

    /// The features in a state.
    pub fn in_state(&self, wanted: State) -> Vec<FeatureId> {
        let listed: HashMap<&FeatureId, &Feature> =
            self.backlog.iter().map(|feature| (&feature.id, feature)).collect();
        let is_wanted = |id: &&FeatureId| self.state_with(id, || listed.get(id).copied()) == wanted;
        self.features.keys().filter(is_wanted).cloned().collect()
    }
}
