//! A project, the command, and what its log holds.

use std::collections::BTreeMap;
use std::path::Path;

use longhaul_engine::{Event, RunId, RunReader};
use longhaul_storage::SledStore;
use longhaul_tests::command::{Longhaul, Output, Running};
use longhaul_tests::history::Histories;
use longhaul_tests::project::{Plan, Project};
use serde_json::Value;

/// A project and the command.
pub(super) struct World {
    pub(super) project: Project,
    pub(super) longhaul: Longhaul,
    pub(super) root: String,
}

impl World {
    pub(super) fn new(plans: &[Plan], pause: f32, settings: &str) -> Self {
        let project = Project::with_settings(plans, pause, settings);
        let longhaul = Longhaul::new(env!("CARGO_BIN_EXE_longhaul-under-test"), project.home());
        let root = project.root().to_string_lossy().into_owned();
        Self { project, longhaul, root }
    }

    /// Runs the project to its end.
    pub(super) fn run(&self) -> Output {
        self.longhaul.call(&["run", &self.root])
    }

    /// Runs a command.
    pub(super) fn call(&self, command: &[&str]) -> Output {
        self.longhaul.call(command)
    }

    /// Starts a command in a process of its own.
    pub(super) fn begin(&self, command: &[&str]) -> Running {
        self.longhaul.begin(command, &self.project.place().join("output"))
    }

    /// The id of the n-th run of a feature.
    pub(super) fn id(&self, feature: &str, number: u32) -> String {
        let project = self.project.git(&["config", "longhaul.id"]);
        format!("{project}/{feature}/{number}")
    }

    /// What the status says of a feature.
    pub(super) fn line(&self, feature: &str) -> Value {
        let status = self.longhaul.status(Path::new(&self.root));
        let lines = status["features"].as_array().cloned().unwrap_or_default();
        lines.into_iter().find(|line| line["id"] == feature).unwrap_or_default()
    }

    /// All histories, after it was checked that each decides as it is recorded.
    pub(super) fn histories(&self) -> BTreeMap<RunId, Vec<Event>> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let store = SledStore::open(self.longhaul.home()).unwrap();
            Histories::of(&store).await.unwrap().check().unwrap();
            let mut histories = BTreeMap::new();
            for (run, _) in store.runs("").await.unwrap() {
                let events = store.read(&run, 0).await.unwrap();
                histories.insert(run, events);
            }
            histories
        })
    }

    /// How many sessions a run began by itself.
    pub(super) fn sessions(&self, run: &str) -> usize {
        self.project.marks().iter().filter(|mark| mark.session.0 == run).count()
    }
}
