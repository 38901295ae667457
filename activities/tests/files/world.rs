//! A project directory and a log in memory; events are recorded one second apart.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use longhaul_activities::files::{FilesError, Projector};
use longhaul_engine::event::Cause;
use longhaul_engine::store::Commit;
use longhaul_engine::{Activity, Event, EventKind, EventLog, Payload, RunId, Slot, Summary};
use longhaul_storage::MemoryStore;
use longhaul_workflows::backlog::{BlockCause, Feature, FeatureId, FeatureStatus};
use longhaul_workflows::project::{BacklogView, FeatureView, Phase, ProjectSummary};
use tempfile::TempDir;

pub(crate) const PROJECT: &str = "shop";

pub(crate) struct World {
    pub(crate) folder: TempDir,
    pub(crate) store: Arc<MemoryStore>,
    pub(crate) now: DateTime<Utc>,
    summaries: HashMap<String, (u64, Summary)>,
    commands: u32,
}

impl World {
    /// A project that has read a list with two features, `login` and `logout`.
    pub(crate) async fn with_project() -> Self {
        let mut world = Self::empty();
        world.start(PROJECT).await;
        world.backlog(&["login", "logout"]).await;
        world.project(|_| ()).await;
        world
    }

    pub(crate) fn empty() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            store: Arc::new(MemoryStore::default()),
            now: "2026-01-31T09:00:00Z".parse().unwrap(),
            summaries: HashMap::new(),
            commands: 0,
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    pub(crate) fn projector(&self) -> Projector {
        self.projector_at(self.folder.path())
    }

    pub(crate) fn projector_at(&self, root: &Path) -> Projector {
        Projector::new(self.store.clone(), RunId::new(PROJECT).unwrap(), root.to_owned())
    }

    /// A refresh by a new process.
    pub(crate) async fn refresh_afresh(&self) -> Result<(), FilesError> {
        self.projector().refresh().await
    }

    /// Records an event.
    pub(crate) async fn record(&mut self, run: &str, kind: EventKind) {
        let (next, summary) = self.summaries.get(run).cloned().unzip();
        let event = Event { position: next.unwrap_or(0), at: self.now, kind };
        let summary = match summary {
            Some(mut summary) => {
                summary.apply(&event);
                summary
            }
            None => Summary::begin(&event).unwrap(),
        };
        self.now += TimeDelta::seconds(1);
        self.summaries.insert(run.to_owned(), (event.position + 1, summary.clone()));
        let mut commit = Commit::of(RunId::new(run).unwrap(), vec![event]);
        commit.summary = Some(summary);
        self.store.commit(commit).await.unwrap();
    }

    pub(crate) async fn start(&mut self, run: &str) {
        self.begin(run, Cause::Started).await;
    }

    pub(crate) async fn begin(&mut self, run: &str, cause: Cause) {
        let (workflow, input) = ("test".to_owned(), Payload::null());
        self.record(
            run,
            EventKind::RunStarted { workflow, input, parent: None, labels: BTreeMap::new(), cause },
        )
        .await;
    }

    pub(crate) async fn publish(&mut self, run: &str, key: &str, value: Payload) {
        let kind = EventKind::StatusPublished { command: 0, key: key.to_owned(), value };
        self.record(run, kind).await;
    }

    pub(crate) async fn backlog(&mut self, ids: &[&str]) {
        let features =
            ids.iter().map(|text| Feature::new(id(text), format!("The {text} | page"))).collect();
        self.publish(PROJECT, BacklogView::KEY, Payload::of(&BacklogView { features })).await;
    }

    /// Publishes the project's view: two unstarted features, unless changed.
    pub(crate) async fn project(&mut self, change: impl FnOnce(&mut ProjectSummary)) {
        let mut view = ProjectSummary {
            merging: Vec::new(),
            merge_queue: Vec::new(),
            parallel: 1,
            root: "/somewhere/else".to_owned(),
            target: "main".to_owned(),
            list_file: "feature_list.json".to_owned(),
            phase: Phase::Working,
            halted: None,
            synced: "1".to_owned(),
            problem: None,
            waits_on_next: None,
            paused: None,
            over_budget: None,
            features: 2,
            passed: 0,
            in_progress: 0,
            blocked: 0,
        };
        change(&mut view);
        self.publish(PROJECT, ProjectSummary::KEY, Payload::of(&view)).await;
    }

    pub(crate) async fn feature(&mut self, text: &str, view: FeatureView) {
        self.publish(PROJECT, &FeatureView::key(&id(text)), Payload::of(&view)).await;
    }

    /// Records the start of an attempt of a guarded activity.
    pub(crate) async fn started<A: Activity>(&mut self, run: &str, input: &A::Input, attempt: u32) {
        let (slot, name) = (self.slot(), A::NAME.to_owned());
        self.record(
            run,
            EventKind::ActivityStarted { slot, name, input: Payload::of(input), attempt },
        )
        .await;
    }

    pub(crate) async fn completed<A: Activity>(
        &mut self,
        run: &str,
        input: &A::Input,
        output: &A::Output,
    ) {
        self.commands += 1;
        let (input, output) = (Payload::of(input), Payload::of(output));
        let (slot, name) = (self.slot(), A::NAME.to_owned());
        self.record(run, EventKind::ActivityCompleted { slot, name, input, attempt: 1, output })
            .await;
    }

    pub(crate) fn slot(&self) -> Slot {
        Slot::only(self.commands)
    }
}

pub(crate) fn id(text: &str) -> FeatureId {
    FeatureId::new(text).unwrap()
}

pub(crate) fn in_progress(run: &str) -> FeatureView {
    FeatureView {
        findings: longhaul_workflows::finding::Findings::default(),
        status: FeatureStatus::InProgress,
        passes: false,
        run: Some(RunId::new(run).unwrap()),
        sessions: 0,
        cause: None,
        reason: None,
        waits: None,
        commit: None,
        called_done: false,
        claimed: false,
        invalidated: None,
    }
}

pub(crate) fn passed(run: &str, sessions: u32, commit: &str) -> FeatureView {
    let commit = Some(commit.to_owned());
    FeatureView {
        status: FeatureStatus::Completed,
        passes: true,
        sessions,
        commit,
        ..in_progress(run)
    }
}

pub(crate) fn blocked(reason: &str) -> FeatureView {
    let reason = Some(reason.to_owned());
    let cause = Some(BlockCause::Request);
    FeatureView { status: FeatureStatus::Blocked, run: None, cause, reason, ..in_progress("none") }
}

/// The headers of a progress file's entries, as `time session action feature`.
pub(crate) fn headers(text: &str) -> Vec<String> {
    let ruler = "=".repeat(60);
    let lines: Vec<&str> = text.lines().collect();
    let of_header = |place: usize| -> Option<String> {
        let (time, session) = lines.get(place + 1)?.strip_prefix('[')?.split_once("] Session: ")?;
        let action = lines.get(place + 2)?.strip_prefix("Action: ")?;
        let feature = lines.get(place + 3)?.strip_prefix("Feature: ")?;
        Some(format!("{} {session} {action} {feature}", time.split(' ').next_back()?))
    };
    (0..lines.len()).filter(|place| lines[*place] == ruler).filter_map(of_header).collect()
}
