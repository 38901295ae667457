//! A project, its log, and places to carry the log to.

use std::path::PathBuf;

use longhaul_tests::command::{Longhaul, Output, Running};
use longhaul_tests::project::{Plan, Project, plain};

/// A project, the command, and a folder of its own.
pub(super) struct World {
    pub(super) project: Project,
    pub(super) longhaul: Longhaul,
    pub(super) root: String,
    /// The id of the project.
    pub(super) id: String,
}

impl World {
    /// A project that has not run.
    pub(super) fn new(plans: &[Plan], pause: f32) -> Self {
        let project = Project::new(plans, pause);
        let longhaul = longhaul(project.home());
        let root = project.root().to_string_lossy().into_owned();
        Self { project, longhaul, root, id: String::new() }
    }

    /// A project with two features that both have landed.
    pub(super) fn finished() -> Self {
        let mut world = Self::new(&[plain("parser", &[], 1), plain("table", &["parser"], 1)], 0.0);
        world.longhaul.call(&["run", &world.root]).exits(0);
        world.id = world.project.git(&["config", "longhaul.id"]);
        world
    }

    /// Starts `longhaul run` in a process of its own, and waits until the agent works on a feature.
    pub(super) fn at_work(&mut self, feature: &str) -> Running {
        let run = self.longhaul.begin(&["run", &self.root], &self.project.place().join("output"));
        self.project.until_at_work(feature);
        self.id = self.project.git(&["config", "longhaul.id"]);
        run
    }

    /// A path in the folder of the world.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.project.place().join(name)
    }

    /// The same as text.
    pub(super) fn text(&self, name: &str) -> String {
        self.path(name).to_string_lossy().into_owned()
    }

    /// Another data directory.
    pub(super) fn elsewhere(&self, name: &str) -> Longhaul {
        longhaul(self.path(name))
    }

    /// The log as an export.
    pub(super) fn exported(&self, longhaul: &Longhaul, name: &str) -> String {
        let file = self.text(name);
        longhaul.call(&["export", "--all", "-O", &file]).exits(0);
        std::fs::read_to_string(file).unwrap()
    }
}

pub(super) fn longhaul(home: impl Into<PathBuf>) -> Longhaul {
    Longhaul::new(env!("CARGO_BIN_EXE_longhaul-under-test"), home)
}

/// The last line of what a command gave.
pub(super) fn last_line(output: &Output) -> &str {
    output.stdout.lines().last().unwrap_or_default()
}
