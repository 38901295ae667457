//! Applies an edited list while features are in progress.

use std::collections::HashSet;

use super::{Backlog, FeatureState, build};
use crate::backlog::error::BacklogError;
use crate::backlog::feature::{Feature, FeatureId};

/// The changes of an edited list.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Changes {
    /// New features, in the file's order.
    pub added: Vec<FeatureId>,
    /// Features that stayed, with the names of their edited fields.
    pub edited: Vec<(FeatureId, Vec<&'static str>)>,
    /// Removed features, as last listed, with their states: one in progress should be stopped.
    pub removed: Vec<(Feature, FeatureState)>,
}

impl Changes {
    /// Whether the edit changed nothing relevant.
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.edited.is_empty() && self.removed.is_empty()
    }
}

impl Backlog {
    /// Applies an edited list. Remaining features keep their states, even if their checks changed;
    /// new ones are pending. On an error the backlog is unchanged.
    pub fn update(&mut self, features: Vec<Feature>) -> Result<Changes, BacklogError> {
        let mut changes = Changes::default();
        let mut entries = Vec::with_capacity(features.len());
        for feature in features {
            let Some(&place) = self.places.get(&feature.id) else {
                changes.added.push(feature.id.clone());
                entries.push((feature, FeatureState::Pending, false));
                continue;
            };
            let node = &self.graph[place];
            let fields = node.feature.differing_fields(&feature);
            if !fields.is_empty() {
                changes.edited.push((feature.id.clone(), fields));
            }
            entries.push((feature, node.state.clone(), node.resumed));
        }
        let kept: HashSet<&FeatureId> = entries.iter().map(|(feature, ..)| &feature.id).collect();
        let gone = self.iter().filter(|(feature, _)| !kept.contains(&feature.id));
        changes.removed = gone.map(|(feature, state)| (feature.clone(), state.clone())).collect();
        *self = build::build(entries)?;
        Ok(changes)
    }
}
