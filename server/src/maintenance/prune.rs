//! Drops the histories of runs that ended long ago, with their unshared payloads.

use std::path::Path;
use std::sync::Arc;

use chrono::Utc;
use longhaul_activities::files::remove_all;
use longhaul_activities::process::run_directory_name;
use longhaul_engine::{RunId, StoreError, Summary};
use longhaul_storage::Archive;

use super::{Prune, Pruned, PrunedRun};
use crate::run_kind::RunKind;
use crate::service::Service;
use crate::views::states::Projects;

pub(crate) async fn run(service: &Arc<Service>, prune: Prune) -> Result<Pruned, StoreError> {
    let Prune { scope, ended_before, statuses, dry_run } = prune;
    let is_meant = |run: &RunId, summary: &Summary| {
        let old = summary.status.is_terminal()
            && summary.ended_at.is_some_and(|ended| ended <= ended_before);
        let is_project = RunKind::of(summary) == RunKind::Project;
        scope.has(run) && old && !is_project && summary.pruned.is_none()
    };
    let all = service.store.runs("").await?;
    let mut runs = Vec::new();
    let mut projects = Projects::default();
    for (run, summary) in all.into_iter().filter(|(run, summary)| is_meant(run, summary)) {
        let view = service.view();
        let status = view.standing(&run, &summary, &mut projects).await?.state;
        // A session is dropped with the run of its feature: its work may still be needed.
        let feature_run = summary.parent.as_ref().filter(|_| is_session(&summary));
        let decisive = match feature_run {
            Some(parent) => match service.store.summary(parent).await? {
                Some(above) => view.standing(parent, &above, &mut projects).await?.state,
                None => status,
            },
            None => status,
        };
        if !statuses.contains(&decisive) {
            continue;
        }
        let mut events = None;
        if !dry_run {
            events = Some(service.log.prune(&run, Utc::now()).await?);
            remove_files(service.log.directory(), &run);
        }
        runs.push(PrunedRun { run, status, ended_at: summary.ended_at, events });
    }
    if dry_run {
        return Ok(Pruned { runs, files: 0, bytes: 0, problem: None });
    }
    let (swept, problem) = match service.log.sweep().await {
        Ok(swept) => (swept, None),
        Err(error) => {
            (longhaul_storage::Swept::default(), Some(format!("large payloads were kept: {error}")))
        }
    };
    Ok(Pruned { runs, files: swept.files, bytes: swept.bytes, problem })
}

fn is_session(summary: &Summary) -> bool {
    RunKind::of(summary) == RunKind::Session
}

/// Removes the outputs of its checks and sessions and the files of its sessions.
fn remove_files(data_dir: &Path, run: &RunId) {
    for directory in ["logs", "sessions"] {
        let path = data_dir.join(directory).join(run_directory_name(run));
        if let Err(error) = remove_all(&path) {
            tracing::warn!("cannot remove {}: {error}", path.display());
        }
    }
}
