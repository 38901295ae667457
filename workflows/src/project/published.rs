//! The published state of a project, folded from its values for every reader.

use std::collections::BTreeMap;

use longhaul_engine::{Payload, RunId};

use crate::backlog::{Feature, FeatureId};
use crate::finding::{Findings, Skipped};

use super::view::RollbackView;
use super::view::{BacklogView, FeatureView, ProjectSummary};

/// The published state of a project.
#[derive(Debug, Clone, Default)]
pub struct ProjectView {
    /// The project as a whole; `None` before it has published anything.
    pub summary: Option<ProjectSummary>,
    /// The features of the list, in their order.
    pub backlog: Vec<Feature>,
    /// The features that are not simply pending.
    pub features: BTreeMap<FeatureId, FeatureView>,
    /// The last ignored signal.
    pub skipped: Option<Skipped>,
    /// Findings about the project as a whole.
    pub findings: Findings,
    /// The last rollback.
    pub rollback: Option<RollbackView>,
}

impl ProjectView {
    /// The view of published values.
    pub fn of(published: &BTreeMap<String, Payload>) -> Self {
        let mut view = Self::default();
        for (key, value) in published {
            view.apply(key, value);
        }
        view
    }

    /// The view of a list that is not in the log, or was edited since.
    #[must_use]
    pub fn with_list(self, backlog: Vec<Feature>) -> Self {
        Self { backlog, ..self }
    }

    /// Applies a value. An unreadable value changes nothing.
    pub fn apply(&mut self, key: &str, value: &Payload) {
        match key {
            ProjectSummary::KEY => self.summary = value.read().ok().or(self.summary.take()),
            BacklogView::KEY => {
                if let Ok(backlog) = value.read::<BacklogView>() {
                    self.backlog = backlog.features;
                }
            }
            Skipped::KEY => self.skipped = value.read().ok(),
            RollbackView::KEY => self.rollback = value.read().ok(),
            Findings::KEY => {
                if let Ok(findings) = value.read() {
                    self.findings = findings;
                }
            }
            _ => {
                let id =
                    key.strip_prefix(FeatureView::PREFIX).and_then(|id| FeatureId::new(id).ok());
                let Some(id) = id else { return };
                if *value == Payload::null() {
                    self.features.remove(&id);
                } else if let Ok(view) = value.read() {
                    self.features.insert(id, view);
                }
            }
        }
    }

    /// The rollback after which the project has not been run.
    pub fn rolled_back(&self) -> Option<&RollbackView> {
        let summary = self.summary.as_ref().filter(|summary| summary.halted.is_some())?;
        let rollback = self.rollback.as_ref()?;
        (rollback.done.is_some() && rollback.synced == summary.synced).then_some(rollback)
    }

    /// The state of a feature that is not simply pending.
    pub fn feature(&self, id: &FeatureId) -> Option<&FeatureView> {
        self.features.get(id)
    }

    /// Whether a feature has passed.
    pub(crate) fn has_passed(&self, id: &FeatureId) -> bool {
        self.feature(id).is_some_and(|feature| feature.passes)
    }

    /// The dependencies of a feature that have not passed.
    pub fn missing_of<'a>(&self, feature: &'a Feature) -> impl Iterator<Item = &'a FeatureId> {
        feature.depends_on.iter().filter(|id| !self.has_passed(id))
    }

    /// A feature of the list.
    pub fn listed(&self, id: &FeatureId) -> Option<&Feature> {
        self.backlog.iter().find(|feature| feature.id == *id)
    }

    /// The runs in which its features passed.
    pub fn passed_runs(&self) -> impl Iterator<Item = &RunId> {
        self.features
            .values()
            .filter(|feature| feature.passes)
            .filter_map(|feature| feature.run.as_ref())
    }
}
