//! Background service of a project in this process: keeps its files current and applies edits of
//! its list.

use std::collections::btree_map::Entry;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use longhaul_activities::files::Projector;
use longhaul_activities::project;
use longhaul_engine::{Payload, RunId};
use longhaul_workflows::backlog::{Feature, FeatureStatus};
use longhaul_workflows::project::signal;
use longhaul_workflows::settings::Settings;
use tokio::sync::broadcast::error::RecvError;
use tokio::task::AbortHandle;

use crate::held;
use crate::service::Service;

/// Changes within this interval are written together.
const GATHER: Duration = Duration::from_millis(250);
/// Poll interval of the list and the settings.
const LOOK: Duration = Duration::from_secs(1);

/// A project that this process serves.
#[derive(Debug)]
pub(crate) struct Engaged {
    root: PathBuf,
    tasks: Vec<AbortHandle>,
}

/// Starts to serve a project, unless it is served already.
pub(crate) async fn engage(service: &Arc<Service>, run: RunId, root: PathBuf) {
    let new = Engaged { root: root.clone(), tasks: Vec::new() };
    match service.lock_engaged().entry(run.clone()) {
        Entry::Vacant(place) => drop(place.insert(new)),
        Entry::Occupied(_) => return,
    }
    let known = Edited::at(&root).await;
    let mut engaged = service.lock_engaged();
    // It may have been removed meanwhile.
    let Some(entry) = engaged.get_mut(&run) else { return };
    entry.tasks.push(
        tokio::spawn(keep_files(Arc::clone(service), run.clone(), root.clone())).abort_handle(),
    );
    entry.tasks.push(tokio::spawn(held::watch(Arc::clone(service), run.clone())).abort_handle());
    entry
        .tasks
        .push(tokio::spawn(watch_list(Arc::clone(service), run, root, known)).abort_handle());
}

/// Writes the files of all projects a last time before the process exits.
pub(crate) async fn refresh_all(service: &Service) {
    let roots = |(run, engaged): (&RunId, &Engaged)| (run.clone(), engaged.root.clone());
    let engaged: Vec<_> = service.lock_engaged().iter().map(roots).collect();
    for (run, root) in engaged {
        refresh(&mut Projector::new(Arc::clone(&service.store), run, root)).await;
    }
}

/// Stops serving an idle project.
pub(crate) async fn disengage(service: &Service, run: &RunId) {
    let Some(engaged) = service.lock_engaged().remove(run) else { return };
    engaged.tasks.iter().for_each(AbortHandle::abort);
    refresh(&mut Projector::new(Arc::clone(&service.store), run.clone(), engaged.root)).await;
}

async fn refresh(projector: &mut Projector) {
    if let Err(error) = projector.refresh().await {
        tracing::warn!("{error}");
    }
}

async fn keep_files(service: Arc<Service>, run: RunId, root: PathBuf) {
    let Some(engine) = &service.engine else { return };
    let mut recorded = engine.recorded();
    let mut projector = Projector::new(Arc::clone(&service.store), run.clone(), root);
    // An obstacle is reported once, not at each event.
    let mut said = None;
    loop {
        let outcome = projector.refresh().await.map_err(|error| error.to_string()).err();
        if outcome != said
            && let Some(error) = &outcome
        {
            tracing::warn!("{error}");
        }
        said = outcome;
        loop {
            let next = tokio::select! {
                next = recorded.recv() => next,
                () = tokio::time::sleep(LOOK) => {
                    if projector.has_late_edit().await {
                        break;
                    }
                    continue;
                }
            };
            match next {
                Ok(recorded) if !recorded.run.is_within(run.as_str()) => {}
                Ok(_) | Err(RecvError::Lagged(_)) => break,
                Err(RecvError::Closed) => return,
            }
        }
        tokio::time::sleep(GATHER).await;
    }
}

/// The list and the settings of a project without the states that Longhaul writes; or why they are
/// unreadable.
#[derive(PartialEq)]
struct Edited(Result<(Settings, Vec<Feature>), String>);

impl Edited {
    async fn at(root: &Path) -> Self {
        let loaded = project::load(root).await.map_err(|failure| failure.message);
        let without_state = |feature| Feature {
            status: FeatureStatus::Pending,
            passes: false,
            last_tested: None,
            ..feature
        };
        Self(loaded.map(|loaded| {
            (loaded.settings, loaded.features.into_iter().map(without_state).collect())
        }))
    }
}

async fn watch_list(service: Arc<Service>, run: RunId, root: PathBuf, mut known: Edited) {
    let Some(engine) = &service.engine else { return };
    loop {
        tokio::time::sleep(LOOK).await;
        let now = Edited::at(&root).await;
        if now == known {
            continue;
        }
        known = now;
        let reload = Payload::of(&uuid::Uuid::now_v7().to_string());
        if let Err(error) = engine.signal(&run, signal::RELOAD, reload).await {
            tracing::warn!("cannot take up the edited list of {run}: {error}");
            return;
        }
    }
}
