//! A project, the command, and transcripts: what the command says, beside what was recorded of it.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{LazyLock, Mutex};

use longhaul_tests::command::{Longhaul, Output, Running};
use longhaul_tests::plain::Plain;
use longhaul_tests::project::{Plan, Project, plain};
use longhaul_tests::shape;
use serde_json::Value;

/// How wide a narrow terminal is.
const NARROW: usize = 40;

/// A project and the command.
pub(super) struct World {
    pub(super) project: Project,
    pub(super) longhaul: Longhaul,
    pub(super) root: String,
    /// Projects beside the one that it is about.
    pub(super) others: Vec<Project>,
}

impl World {
    /// A project with these features, one worked on at a time.
    pub(super) fn new(plans: &[Plan], pause: f32) -> Self {
        Self::with_settings(plans, pause, "[project]\nparallel = 1\n[limits]\nfailed_gates = 2\n")
    }

    /// A project with these features and settings.
    pub(super) fn with_settings(plans: &[Plan], pause: f32, settings: &str) -> Self {
        let project = Project::with_settings(plans, pause, settings);
        let longhaul = Longhaul::new(env!("CARGO_BIN_EXE_longhaul-under-test"), project.home());
        let root = project.root().to_string_lossy().into_owned();
        Self { project, longhaul, root, others: Vec::new() }
    }

    /// A project with one feature. Its session has called the work done while a pause kept that
    /// from being taken; `paused`: what was paused.
    pub(super) fn with_untaken_session(paused: &str) -> Self {
        let world = Self::new(&[plain("parser", &[], 1)], 0.0);
        world.project.hold("parser");
        let mut run = world.begin();
        world.project.until_at_work("parser");
        world.call(&format!("pause {paused}")).exits(0);
        world.project.let_go("parser");
        run.exits(3);
        world
    }

    pub(super) fn run(&self) -> Output {
        self.longhaul.call(&["run", &self.root])
    }

    pub(super) fn begin(&self) -> Running {
        self.longhaul.begin(&["run", &self.root], &self.project.place().join("output"))
    }

    /// A command, its words parted by blanks; `.` stands for the project, `<project>` for its id,
    /// `<place>` for the folder of the test.
    pub(super) fn call(&self, command: &str) -> Output {
        self.call_with(&self.longhaul, command)
    }

    /// Features are looked for in the project; JSON is what its schema promises; nothing is
    /// coloured.
    pub(super) fn call_with(&self, longhaul: &Longhaul, command: &str) -> Output {
        let (id, place) = (id_of(&self.project), self.project.place());
        let word = |word: &str| match word {
            "." => self.root.clone(),
            word => word.replace("<project>", &id).replace("<place>", &place.to_string_lossy()),
        };
        let mut words: Vec<String> = command.split(' ').map(word).collect();
        if IN_A_PROJECT.contains(&words[0].as_str()) {
            words.extend(["--dir".into(), self.root.clone()]);
        }
        let output = longhaul.call(&words.iter().map(String::as_str).collect::<Vec<_>>());
        assert!(
            !output.stdout.contains('\x1b') && !output.stderr.contains('\x1b'),
            "longhaul {command}: colours in a pipe"
        );
        // The lines of a history are those of a history file.
        if command.contains("-o json")
            && !(command.starts_with("history") && command.contains("-o jsonl"))
        {
            check_shapes(longhaul, command, &output);
        }
        output
    }

    pub(super) fn json(&self, command: &str) -> Value {
        self.call(&format!("{command} -o json")).exits(0).json()
    }

    /// The id of the project; nothing if it has none yet.
    pub(super) fn project_id(&self) -> String {
        id_of(&self.project)
    }

    /// What a command gives, without what differs between two runs of the same project.
    #[track_caller]
    pub(super) fn plain(&self, command: &str) -> String {
        let output = self.call(command);
        self.without_differences(&output.exits(0).stdout)
    }

    fn without_differences(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (number, other) in self.others.iter().enumerate() {
            text =
                text.replace(&*other.place().to_string_lossy(), &format!("<place {}>", number + 2));
            text = text.replace(&id_of(other), &format!("<project {}>", number + 2));
        }
        let plain =
            Plain::of(&id_of(&self.project), &self.project.place().to_string_lossy()).text(&text);
        plain.replace("longhaul-under-test", "longhaul")
    }

    /// What a command that looks gives is what was recorded.
    #[track_caller]
    pub(super) fn check(&self, name: &str, command: &str) {
        compare(&format!("look/{name}"), &format!("$ longhaul {command}\n{}", self.plain(command)));
    }

    /// What commands give one after another, what they say besides, and how they end, is what was
    /// recorded. `narrow` before a command: on a narrow terminal.
    #[track_caller]
    pub(super) fn transcript(&self, name: &str, commands: &[&str]) {
        compare(name, &commands.iter().map(|command| self.part(command)).collect::<String>());
    }

    /// A text is what was recorded, but for what differs between two runs of the same project.
    #[track_caller]
    pub(super) fn recorded(&self, name: &str, text: &str) {
        compare(name, &self.without_differences(text));
    }

    fn part(&self, command: &str) -> String {
        let (shown, output) = match command.strip_prefix("narrow ") {
            Some(command) => (format!("COLUMNS={NARROW} longhaul {command}"), self.narrow(command)),
            None => (format!("longhaul {command}"), self.call(command)),
        };
        let mut text = format!("$ {shown}\n{}", self.without_differences(&output.stdout));
        if !output.stderr.is_empty() {
            text += &format!("--- besides\n{}", self.without_differences(&output.stderr));
        }
        text + &format!("--- exit {}\n\n", output.code())
    }

    /// A command on a narrow terminal, whose data fits there.
    #[track_caller]
    pub(super) fn narrow(&self, command: &str) -> Output {
        let output =
            self.call_with(&self.longhaul.clone().with("COLUMNS", &NARROW.to_string()), command);
        let long: Vec<&str> =
            output.stdout.lines().filter(|line| line.chars().count() > NARROW).collect();
        assert!(long.is_empty(), "{command}: {long:#?}\n{}", output.stdout);
        output
    }
}

/// The id of a project; nothing if it has none yet.
pub(super) fn id_of(project: &Project) -> String {
    longhaul_tests::project::git(&project.root(), &["config", "longhaul.id"]).unwrap_or_default()
}

/// The commands that look for features in the project of `--dir`.
const IN_A_PROJECT: [&str; 24] = [
    "describe",
    "history",
    "logs",
    "why",
    "feature",
    "pause",
    "resume",
    "cancel",
    "terminate",
    "signal",
    "steer",
    "approve",
    "deny",
    "fork",
    "restart",
    "checkpoint",
    "checkpoints",
    "reconcile",
    "replay",
    "export",
    "tree",
    "session",
    "usage",
    "answer",
];

/// A text is what was recorded.
#[track_caller]
fn compare(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("snapshots").join(format!("{name}.txt"));
    if std::env::var_os("LONGHAUL_RECORD").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
    }
    let recorded = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        text == recorded,
        "{} differs; LONGHAUL_RECORD=1 records it anew\n--- recorded\n{recorded}\n--- now\n{text}",
        path.display()
    );
}

/// Each document says what it is, and fits the schema that the command has for it.
#[track_caller]
fn check_shapes(longhaul: &Longhaul, command: &str, output: &Output) {
    static SCHEMAS: LazyLock<Mutex<HashMap<String, Value>>> = LazyLock::new(Mutex::default);
    let whole = serde_json::from_str(&output.stdout).map(|document| vec![document]);
    let each =
        || output.stdout.lines().map(serde_json::from_str).collect::<Result<Vec<Value>, _>>();
    for document in whole
        .or_else(|_| each())
        .unwrap_or_else(|error| panic!("longhaul {command}: {error}\n{}", output.stdout))
    {
        let id = document["schema"]
            .as_str()
            .unwrap_or_else(|| panic!("longhaul {command}: what is {document}?"));
        let name = id.trim_start_matches("longhaul.").split('/').next().unwrap_or_default();
        let mut schemas = SCHEMAS.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let schema = schemas
            .entry(name.to_owned())
            .or_insert_with(|| longhaul.call(&["schema", name]).exits(0).json());
        let problems = shape::problems(schema, &document);
        assert!(problems.is_empty(), "longhaul {command}: {problems:#?}");
    }
}
