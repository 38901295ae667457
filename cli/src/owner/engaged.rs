//! Looking after a project that this process runs: its files are kept current, and edits of its list are taken up.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use longhaul_activities::files::Projector;
use longhaul_activities::project;
use longhaul_engine::{Payload, RunId};
use longhaul_workflows::backlog::{Feature, FeatureStatus};
use longhaul_workflows::project::signal;
use tokio::sync::broadcast::error::RecvError;

use super::Desk;

/// How long changes are gathered before the files are written.
const GATHER: Duration = Duration::from_millis(250);
/// How often the list and the settings are looked at.
const LOOK: Duration = Duration::from_secs(1);

/// Begins to look after a project, unless that is done already.
pub(super) async fn engage(desk: &Arc<Desk>, run: RunId, root: PathBuf) {
    if desk.lock_engaged().insert(run.clone(), root.clone()).is_some() {
        return;
    }
    let known = asked_for(&root).await;
    tokio::spawn(keep_files(Arc::clone(desk), run.clone(), root.clone()));
    tokio::spawn(watch_list(Arc::clone(desk), run, root, known));
}

/// Writes the files of all engaged projects once more: the last word of a process that ends.
pub(super) async fn refresh_all(desk: &Desk) {
    let engaged = desk.lock_engaged().clone();
    for (run, root) in engaged {
        refresh(&mut Projector::new(Arc::clone(&desk.store), run, root)).await;
    }
}

/// Ceases to look after a project that has nothing to do.
pub(super) async fn disengage(desk: &Desk, run: &RunId) {
    let root = desk.lock_engaged().remove(run);
    if let Some(root) = root {
        refresh(&mut Projector::new(Arc::clone(&desk.store), run.clone(), root)).await;
    }
}

fn is_engaged(desk: &Desk, run: &RunId) -> bool {
    desk.lock_engaged().contains_key(run)
}

async fn refresh(projector: &mut Projector) {
    if let Err(error) = projector.refresh().await {
        tracing::warn!("{error}");
    }
}

async fn keep_files(desk: Arc<Desk>, run: RunId, root: PathBuf) {
    let Some(engine) = &desk.engine else { return };
    let mut recorded = engine.recorded();
    let mut projector = Projector::new(Arc::clone(&desk.store), run.clone(), root);
    while is_engaged(&desk, &run) {
        refresh(&mut projector).await;
        loop {
            match recorded.recv().await {
                Ok(recorded) if !recorded.run.as_str().starts_with(run.as_str()) => {}
                Ok(_) | Err(RecvError::Lagged(_)) => break,
                Err(RecvError::Closed) => return,
            }
        }
        tokio::time::sleep(GATHER).await;
    }
}

/// What a project asks for, as text: without the states, which we write ourselves. An unreadable list is a text too.
async fn asked_for(root: &Path) -> String {
    match project::load(root).await {
        Ok(loaded) => {
            let asked = loaded.features.into_iter().map(|feature| Feature {
                status: FeatureStatus::Pending,
                passes: false,
                last_tested: None,
                ..feature
            });
            format!("{:?} {:?}", loaded.settings, asked.collect::<Vec<_>>())
        }
        Err(failure) => failure.message,
    }
}

async fn watch_list(desk: Arc<Desk>, run: RunId, root: PathBuf, mut known: String) {
    let Some(engine) = &desk.engine else { return };
    loop {
        tokio::time::sleep(LOOK).await;
        if !is_engaged(&desk, &run) {
            return;
        }
        let now = asked_for(&root).await;
        if now == known {
            continue;
        }
        known = now;
        let sync = Payload::of(&uuid::Uuid::now_v7().to_string());
        if let Err(error) = engine.signal(&run, signal::SYNC, sync).await {
            tracing::warn!("cannot take up the edited list of {run}: {error}");
            return;
        }
    }
}
