//! Background service of a project in this process: keeps its files current and applies edits of
//! its list.

use super::service::ServedProject;
use std::collections::btree_map::Entry;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use chrono::Utc;
use longhaul_activities::files::Projector;
use longhaul_engine::{Payload, RunId, StoreError};
use longhaul_workflows::project::signal;
use serde::{Deserialize, Serialize};
use tokio::sync::broadcast::error::RecvError;
use tokio::task::AbortHandle;

use crate::edited::Edited;
use crate::held;
use crate::perform::request;
use crate::request::RequestError;
use crate::service::Service;

/// Changes within this interval are written together.
const GATHER: Duration = Duration::from_millis(250);
/// The time between two writes, in times of that which a write takes: the files of a large project
/// cost at most a twentieth of a core.
const PAUSE: u32 = 20;
/// Poll interval of the list and the settings: a poll of four files works on every file system, and
/// with every editor.
const LOOK: Duration = Duration::from_secs(1);

/// Starts to serve a project, unless it is served already.
pub(crate) async fn serve(service: &Arc<Service>, run: RunId, root: PathBuf) {
    let known = Arc::new(tokio::sync::Mutex::new(None));
    let new = ServedProject {
        root: root.clone(),
        since: Utc::now(),
        tasks: Vec::new(),
        known: Arc::clone(&known),
    };
    match service.lock_served().entry(run.clone()) {
        Entry::Vacant(place) => drop(place.insert(new)),
        Entry::Occupied(_) => return,
    }
    *known.lock().await = Some(Edited::at(&root).await);
    let mut served = service.lock_served();
    // It may have been removed meanwhile.
    let Some(entry) = served.get_mut(&run) else { return };
    entry.tasks.push(
        tokio::spawn(keep_files(Arc::clone(service), run.clone(), root.clone())).abort_handle(),
    );
    entry.tasks.push(tokio::spawn(held::watch(Arc::clone(service), run.clone())).abort_handle());
    entry
        .tasks
        .push(tokio::spawn(watch_list(Arc::clone(service), run, root, known)).abort_handle());
}

/// Stops serving all projects before the process exits: a task that still wrote when it exits would
/// report files that are current.
pub(crate) async fn stop_serving_all(service: &Service) {
    for run in service.served() {
        stop_serving(service, &run).await;
    }
}

/// Stops serving an idle project, and writes its files a last time.
pub(crate) async fn stop_serving(service: &Service, run: &RunId) {
    let Some(served) = service.lock_served().remove(run) else { return };
    served.tasks.iter().for_each(AbortHandle::abort);
    refresh(&mut Projector::new(Arc::clone(&service.store), run.clone(), served.root)).await;
}

async fn refresh(projector: &mut Projector) {
    if let Err(error) = projector.refresh().await {
        tracing::warn!("{error}");
    }
}

async fn keep_files(service: Arc<Service>, run: RunId, root: PathBuf) {
    let Some(engine) = &service.engine else { return };
    let mut changes = engine.changes();
    let mut projector = Projector::new(Arc::clone(&service.store), run.clone(), root);
    // An obstacle is reported once, not at each event.
    let mut said = None;
    loop {
        let begun = Instant::now();
        let outcome = projector.refresh().await.map_err(|error| error.to_string()).err();
        if outcome != said
            && let Some(error) = &outcome
        {
            tracing::warn!("{error}");
        }
        let took = begun.elapsed();
        said = outcome;
        loop {
            let next = tokio::select! {
                next = changes.recv() => next,
                () = tokio::time::sleep(LOOK) => {
                    if projector.has_late_edit().await {
                        break;
                    }
                    continue;
                }
            };
            match next {
                Ok(change) if !change.run.is_within(run.as_str()) => {}
                Ok(_) | Err(RecvError::Lagged(_)) => break,
                Err(RecvError::Closed) => return,
            }
        }
        tokio::time::sleep(GATHER.max(took * PAUSE)).await;
    }
}

async fn watch_list(
    service: Arc<Service>,
    run: RunId,
    root: PathBuf,
    known: Arc<tokio::sync::Mutex<Option<Edited>>>,
) {
    loop {
        tokio::time::sleep(LOOK).await;
        if let Err(error) = take_up_edits(&service, &run, &root, &known).await {
            tracing::warn!("cannot take up the edited list of {run}: {error}");
            return;
        }
    }
}

/// Makes a project read its list and settings, if they were edited; returns whether they were.
async fn take_up_edits(
    service: &Service,
    run: &RunId,
    root: &Path,
    known: &tokio::sync::Mutex<Option<Edited>>,
) -> Result<bool, StoreError> {
    let Some(engine) = &service.engine else { return Ok(false) };
    let mut known = known.lock().await;
    let Some(before) = known.as_ref().filter(|known| !known.is_current(root)) else {
        return Ok(false);
    };
    let now = Edited::at(root).await;
    let is_same = now.content == before.content;
    *known = Some(now);
    if is_same {
        return Ok(false);
    }
    let reload = Payload::of(&uuid::Uuid::now_v7().to_string());
    engine.signal(run, signal::RELOAD, reload).await?;
    Ok(true)
}

/// Makes projects read their edited lists and settings now.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TakeUpEdits {
    /// The projects.
    pub projects: Vec<RunId>,
}

request!(TakeUpEdits, "take_up_edits" -> bool, |self, service| self.run(&service).await);

impl TakeUpEdits {
    /// Whether one of them was edited.
    async fn run(self, service: &Service) -> Result<bool, RequestError> {
        let mut is_edited = false;
        for run in self.projects {
            let served = service
                .lock_served()
                .get(&run)
                .map(|served| (served.root.clone(), Arc::clone(&served.known)));
            if let Some((root, known)) = served {
                is_edited |= take_up_edits(service, &run, &root, &known).await?;
            }
        }
        Ok(is_edited)
    }
}

/// How long a shutdown waits for open requests.
const LAST_ANSWERS: Duration = Duration::from_secs(2);

impl Service {
    /// Stops the engine, if there is one. New requests are refused; open ones complete within the
    /// grace period.
    pub async fn stop(&self) {
        let _ = tokio::time::timeout(LAST_ANSWERS, self.close()).await;
        if let Some(engine) = &self.engine {
            engine.stop().await;
        }
        stop_serving_all(self).await;
        self.release_work_trees().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Limits;

    #[tokio::test]
    async fn nothing_writes_files_after_a_stop() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().join("home");
        let service = crate::open(&home, Limits { agents: 1, checks: 1 }).await.unwrap();
        let run = RunId::new("shop-1a2b3c").unwrap();
        serve(&service, run.clone(), dir.path().to_owned()).await;
        let tasks = service.lock_served()[&run].tasks.clone();
        service.stop().await;
        tokio::task::yield_now().await;
        assert_eq!((service.served(), tasks.len()), (vec![], 3));
        assert!(tasks.iter().all(AbortHandle::is_finished));
    }
}
