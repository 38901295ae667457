//! Background service of a project in this process: keeps its files current and applies edits of
//! its list.

use super::service::ServedProject;
use std::collections::btree_map::Entry;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use chrono::Utc;
use longhaul_activities::files::Projector;
use longhaul_activities::project::{self, FileVersions};
use longhaul_engine::{Payload, RunId};
use longhaul_workflows::backlog::{Feature, FeatureStatus};
use longhaul_workflows::contracts::LoadedBacklog;
use longhaul_workflows::project::signal;
use tokio::sync::broadcast::error::RecvError;
use tokio::task::AbortHandle;

use crate::held;
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
pub(crate) async fn engage(service: &Arc<Service>, run: RunId, root: PathBuf) {
    let new = ServedProject { root: root.clone(), since: Utc::now(), tasks: Vec::new() };
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

/// Stops serving all projects before the process exits: a task that still wrote when it exits would
/// report files that are current.
pub(crate) async fn disengage_all(service: &Service) {
    for run in service.engaged() {
        disengage(service, &run).await;
    }
}

/// Stops serving an idle project, and writes its files a last time.
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

/// The list and the settings of a project without the states that Longhaul writes.
struct Edited {
    /// A digest of them, or why they are unreadable.
    content: Result<blake3::Hash, String>,
    /// The versions of the files that they were read from, if a further edit would be noticed.
    files: Option<FileVersions>,
}

impl Edited {
    async fn at(root: &Path) -> Self {
        let begun = SystemTime::now();
        let loaded = project::load(root).await.map_err(|failure| failure.message);
        let files = loaded
            .as_ref()
            .ok()
            .and_then(|loaded| FileVersions::of(root, &loaded.list_file, begun));
        let without_state = |feature| Feature {
            status: FeatureStatus::Pending,
            passes: false,
            last_tested: None,
            ..feature
        };
        let digest = |loaded: LoadedBacklog| {
            let mut hasher = blake3::Hasher::new();
            hasher.update(Payload::of(&(&loaded.settings, &loaded.list_file)).as_bytes());
            for feature in loaded.features {
                hasher.update(Payload::of(&without_state(feature)).as_bytes());
            }
            hasher.finalize()
        };
        Self { content: loaded.map(digest), files }
    }

    /// Whether no file has changed.
    fn is_current(&self, root: &Path) -> bool {
        self.files.as_ref().is_some_and(|files| files.is_current(root))
    }
}

async fn watch_list(service: Arc<Service>, run: RunId, root: PathBuf, mut known: Edited) {
    let Some(engine) = &service.engine else { return };
    loop {
        tokio::time::sleep(LOOK).await;
        if known.is_current(&root) {
            continue;
        }
        let now = Edited::at(&root).await;
        let is_same = now.content == known.content;
        known = now;
        if is_same {
            continue;
        }
        let reload = Payload::of(&uuid::Uuid::now_v7().to_string());
        if let Err(error) = engine.signal(&run, signal::RELOAD, reload).await {
            tracing::warn!("cannot take up the edited list of {run}: {error}");
            return;
        }
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
        disengage_all(self).await;
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
        engage(&service, run.clone(), dir.path().to_owned()).await;
        let tasks = service.lock_engaged()[&run].tasks.clone();
        service.stop().await;
        tokio::task::yield_now().await;
        assert_eq!((service.engaged(), tasks.len()), (vec![], 3));
        assert!(tasks.iter().all(AbortHandle::is_finished));
    }
}
