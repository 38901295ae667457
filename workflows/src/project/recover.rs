//! Restarting a project whose run was terminated or failed.

use std::collections::BTreeMap;

use longhaul_engine::{Payload, RequestedBy};
use serde::{Deserialize, Serialize};

use super::published::ProjectView;
use crate::backlog::{Block, BlockCause, Feature, FeatureId, FeatureState, FeatureStatus};
use crate::contracts::ProjectRef;

use super::record::{Record, RemovedFeature};
use super::state::{ProjectInput, Snapshot};
use super::view::FeatureView;

/// What the log knows of the runs of a feature besides the published values.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FeatureRuns {
    /// The number of the last one.
    pub last: u32,
    /// The files changed by it, if it passed.
    pub files: Vec<String>,
    /// The commit on which it passed.
    pub commit: Option<String>,
    /// The feature that it worked on, if that is no longer in the list.
    pub removed: Option<Box<Feature>>,
    /// Whether its last session ended and called the work done.
    pub called_done: bool,
    /// Whether the last one ended without an outcome.
    pub ended_early: bool,
}

impl ProjectInput {
    /// The input of a run that continues from the last published values, and from the runs of its
    /// features in the log. No feature run is active: features in progress become pending, and get
    /// another run. The project stays halted until its first sync, which brings the settings.
    pub fn recovered(
        project: ProjectRef,
        published: &BTreeMap<String, Payload>,
        mut runs: BTreeMap<FeatureId, FeatureRuns>,
    ) -> Self {
        let ProjectView { summary: Some(summary), backlog, mut features, findings, .. } =
            ProjectView::of(published)
        else {
            return Self { project, memory: None };
        };
        let mut memory = Snapshot::nothing();
        for feature in &backlog {
            let runs = runs.remove(&feature.id).unwrap_or_default();
            if let Some(view) = features.remove(&feature.id) {
                memory.records.insert(feature.id.clone(), recovered(view, runs));
            }
        }
        // The features that were removed from the list: a restored one continues from its work,
        // and the numbers of their runs stay used.
        let gone = runs.into_iter().filter(|(_, runs)| runs.last > 0);
        memory.gone = gone.map(|(id, runs)| (id.clone(), removed(id, runs))).collect();
        memory.features = backlog;
        memory.target = summary.target;
        memory.list_file = summary.list_file;
        memory.waits_on_next = summary.waits_on_next;
        memory.synced = summary.synced;
        memory.findings = findings;
        memory.halted =
            Some(RequestedBy { by: String::new(), why: "its run is begun again".into() });
        Self { project, memory: Some(memory) }
    }
}

fn removed(id: FeatureId, runs: FeatureRuns) -> RemovedFeature {
    let feature = runs.removed.map_or_else(|| Feature::new(id, String::new()), |known| *known);
    let record = Record {
        state: if runs.commit.is_some() { FeatureState::Passed } else { FeatureState::Pending },
        runs: runs.last,
        commit: runs.commit,
        called_done: runs.called_done,
        may_have_landed: runs.ended_early,
        files: runs.files,
        ..Record::default()
    };
    RemovedFeature { feature, record }
}

fn recovered(view: FeatureView, runs: FeatureRuns) -> Record {
    let number = view.run.as_ref().and_then(longhaul_engine::RunId::number);
    let is_open = view.status == FeatureStatus::InProgress;
    let state = match (view.passes, view.status) {
        (true, _) => FeatureState::Passed,
        (_, FeatureStatus::Blocked) => FeatureState::Blocked(Block {
            cause: view.cause.unwrap_or(BlockCause::Request),
            reason: view.reason.unwrap_or_default(),
        }),
        _ => FeatureState::Pending,
    };
    Record {
        state,
        // The last run may be pruned.
        runs: runs.last.max(number.unwrap_or_default()),
        sessions: view.sessions,
        commit: view.commit,
        claimed: view.claimed,
        // The run may not have read the end of its session before it was terminated.
        called_done: view.called_done || (is_open && runs.called_done),
        // Its outcome may not have been read, and its landing not have been recorded.
        may_have_landed: is_open || runs.ended_early,
        files: runs.files,
        invalidated: view.invalidated,
        findings: view.findings,
        ..Record::default()
    }
}
