//! A project to look at, and the command.

use std::path::Path;

use longhaul_tests::command::{Longhaul, Running, Said};
use longhaul_tests::project::{Plan, Project};
use serde_json::Value;

use super::plain::Plain;

/// A project and the command.
pub(super) struct World {
    pub(super) project: Project,
    pub(super) longhaul: Longhaul,
    pub(super) root: String,
}

impl World {
    /// A project with these features, one worked on at a time.
    pub(super) fn new(plans: &[Plan], pause: f32) -> Self {
        let settings = "[project]\nparallel = 1\n[limits]\nfailed_gates = 2\n";
        let project = Project::with_settings(plans, pause, settings);
        let longhaul = Longhaul::new(env!("CARGO_BIN_EXE_longhaul-under-test"), project.home());
        let root = project.root().to_string_lossy().into_owned();
        Self { project, longhaul, root }
    }

    pub(super) fn run(&self) -> Said {
        self.longhaul.call(&["run", &self.root])
    }

    pub(super) fn begin(&self) -> Running {
        self.longhaul.begin(&["run", &self.root], &self.project.place().join("said"))
    }

    /// A command, its words parted by blanks; `.` stands for the project.
    pub(super) fn call(&self, command: &str) -> Said {
        self.call_with(&self.longhaul, command)
    }

    pub(super) fn call_with(&self, longhaul: &Longhaul, command: &str) -> Said {
        let words = command.split(' ').map(|word| if word == "." { self.root.as_str() } else { word });
        let mut words: Vec<&str> = words.collect();
        if ["describe", "history", "logs", "why"].contains(&words[0]) {
            words.extend(["--dir", &self.root]);
        }
        longhaul.call(&words)
    }

    pub(super) fn json(&self, command: &str) -> Value {
        self.call(&format!("{command} -o json")).exits(0).json()
    }

    pub(super) fn project_id(&self) -> String {
        self.project.git(&["config", "longhaul.id"])
    }

    /// What a command gives, without what differs between two runs of the same project.
    #[track_caller]
    pub(super) fn plain(&self, command: &str) -> String {
        let said = self.call(command);
        let plain = Plain::of(&self.project_id(), &self.project.place().to_string_lossy());
        plain.text(&said.exits(0).out)
    }

    /// What a command gives is what was recorded.
    #[track_caller]
    pub(super) fn check(&self, name: &str, command: &str) {
        let text = format!("$ longhaul {command}\n{}", self.plain(command));
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("snapshots/look").join(format!("{name}.txt"));
        if std::env::var_os("LONGHAUL_RECORD").is_some() {
            std::fs::write(&path, &text).unwrap();
        }
        let recorded = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            text == recorded,
            "{} differs; LONGHAUL_RECORD=1 records it anew\n--- recorded\n{recorded}\n--- now\n{text}",
            path.display()
        );
    }
}
