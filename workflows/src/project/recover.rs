//! Restarting a project whose run was terminated or failed.

use std::collections::BTreeMap;

use longhaul_engine::{Payload, RequestedBy};

use super::published::ProjectView;
use crate::backlog::{FeatureId, FeatureState, FeatureStatus};
use crate::contracts::ProjectRef;

use super::record::Record;
use super::state::{ProjectInput, Snapshot};
use super::view::FeatureView;

impl ProjectInput {
    /// The input of a run that continues from the last published values, and from the changed files
    /// of passed features. No feature run is active: features in progress become pending, and get
    /// another run. The project stays halted until its first sync, which brings the settings.
    pub fn recovered(
        project: ProjectRef,
        published: &BTreeMap<String, Payload>,
        mut files: BTreeMap<FeatureId, Vec<String>>,
    ) -> Self {
        let ProjectView { summary: Some(summary), backlog, mut features, findings, .. } =
            ProjectView::of(published)
        else {
            return Self { project, memory: None };
        };
        let records = backlog.iter().filter_map(|feature| {
            let view = features.remove(&feature.id)?;
            Some((
                feature.id.clone(),
                recovered(view, files.remove(&feature.id).unwrap_or_default()),
            ))
        });
        let mut memory = Snapshot::nothing();
        memory.records = records.collect();
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

fn recovered(view: FeatureView, files: Vec<String>) -> Record {
    let number = view.run.as_ref().and_then(|run| run.as_str().rsplit('/').next()?.parse().ok());
    let state = match (view.passes, view.status) {
        (true, _) => FeatureState::Passed,
        (_, FeatureStatus::Blocked) => FeatureState::Blocked(view.reason.unwrap_or_default()),
        _ => FeatureState::Pending,
    };
    Record {
        state,
        runs: number.unwrap_or_default(),
        sessions: view.sessions,
        commit: view.commit,
        called_done: view.called_done,
        files,
        invalidated: view.invalidated,
        findings: view.findings,
        ..Record::default()
    }
}
