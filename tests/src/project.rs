//! Small projects with a scripted agent: real git repositories in a directory of their own.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use chrono::{DateTime, Utc};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::wait::until;

/// How the agent works on a feature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Habit {
    /// It does what it should.
    Plain,
    /// Its first session does not pass; with the feedback, the second one does.
    Repairs,
    /// After its first step it says that its context is full, once.
    Fills,
    /// Its first session marks every feature as passing in the list, and leaves a process behind.
    Tampers,
    /// What it does never passes.
    Never,
    /// What it does passes only when a person has told it to `finish it`.
    Obeys,
}

impl Habit {
    fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Repairs => "repairs",
            Self::Fills => "fills",
            Self::Tampers => "tampers",
            Self::Never => "never",
            Self::Obeys => "obeys",
        }
    }
}

/// A feature, and how the agent works on it.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// The id of the feature.
    pub id: &'static str,
    /// The features that must pass first.
    pub needs: &'static [&'static str],
    /// How many steps the agent makes.
    pub steps: u32,
    /// How it works.
    pub habit: Habit,
}

/// A feature without peculiarities.
pub const fn plain(id: &'static str, needs: &'static [&'static str], steps: u32) -> Plan {
    Plan { id, needs, steps, habit: Habit::Plain }
}

/// What the agent wrote down about one process of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    /// The run and the number of the session within it.
    pub session: (String, u32),
    /// When the process began.
    pub began: DateTime<Utc>,
    /// Whether it came to its end.
    pub ended: bool,
    /// When the mark was touched last: its end, if it came to that.
    pub last: DateTime<Utc>,
}

/// The sandbox costs a test a quarter of its time. Tests that are about it, or about processes that
/// are killed, have it.
const NO_SANDBOX: &str = "sandbox = \"off\"\n";

/// A project in a folder of its own; the folder goes when this is dropped.
#[derive(Debug)]
pub struct Project {
    folder: TempDir,
}

impl Project {
    /// A project with these features, whose agent waits so many seconds before each step.
    pub fn new(plans: &[Plan], pause: f32) -> Self {
        Self::with_settings(plans, pause, "")
    }

    /// A project with more in its settings.
    pub fn with_settings(plans: &[Plan], pause: f32, settings: &str) -> Self {
        Self::placed(plans, pause, settings, |_| ())
    }

    /// A project in a folder that is prepared first: the checkout will be `p` in it, the data
    /// directory `home`.
    pub fn placed(plans: &[Plan], pause: f32, settings: &str, prepare: impl FnOnce(&Path)) -> Self {
        let folder = tempfile::tempdir().expect("a folder can be made for a test");
        let project = Self { folder };
        prepare(&project.place());
        for folder in [project.root().join("plan"), project.journal()] {
            fs::create_dir_all(folder).expect("a folder can be made for a test");
        }
        project.write("agent.sh", include_str!("agent.sh"));
        project.write("init.sh", "#!/bin/sh\ntest -d plan\n");
        for program in ["agent.sh", "init.sh"] {
            let mode = fs::Permissions::from_mode(0o755);
            fs::set_permissions(project.root().join(program), mode)
                .expect("a file of a test is its own");
        }
        project.write("README.md", "A project to try things on.\n");
        let journal = project.journal();
        let agent = format!(
            "[agent]\n{NO_SANDBOX}command = [\"./agent.sh\"]\nenv = {{ LONGHAUL_TEST_JOURNAL = '{}' }}\nwrite = ['{}']\n",
            journal.display(),
            project.place().display()
        );
        project.write("longhaul.toml", &format!("{agent}\n{settings}"));
        for Plan { id, steps, habit, .. } in plans {
            let habit = habit.name();
            project.write(
                &format!("plan/{id}"),
                &format!("steps={steps} pause={pause} habit={habit}\n"),
            );
        }
        project.write_list(plans);
        project.git(&["init", "--quiet", "--initial-branch", "main"]);
        project.git(&["config", "user.name", "Test"]);
        project.git(&["config", "user.email", "test@example.org"]);
        project.commit("Begin");
        project
    }

    /// Gives the agent other settings of its sandbox, and commits them.
    pub fn set_sandbox(&self, settings: &str) {
        let text = self.read("longhaul.toml").replacen(NO_SANDBOX, settings, 1);
        self.write("longhaul.toml", &text);
        self.git(&["commit", "--quiet", "--all", "--amend", "--no-edit", "--allow-empty"]);
    }

    /// Writes the feature list.
    pub fn write_list(&self, plans: &[Plan]) {
        let feature = |plan: &Plan| {
            let check = format!("grep -q finished {}.txt", plan.id);
            json!({
                "id": plan.id, "name": format!("Feature {}", plan.id), "description": format!("Make {}.", plan.id),
                "status": "pending", "passes": false, "depends_on": plan.needs, "checks": [check],
            })
        };
        let features: Vec<Value> = plans.iter().map(feature).collect();
        let list = json!({ "project_name": "p", "features": features });
        self.write(
            "feature_list.json",
            &(serde_json::to_string_pretty(&list).expect("this is JSON") + "\n"),
        );
    }

    /// The user's checkout.
    pub fn root(&self) -> PathBuf {
        self.place().join("p")
    }

    /// A data directory for the project.
    pub fn home(&self) -> PathBuf {
        self.place().join("home")
    }

    fn journal(&self) -> PathBuf {
        self.place().join("journal")
    }

    /// Where all of it is, without links.
    pub fn place(&self) -> PathBuf {
        self.folder.path().canonicalize().expect("the folder of a test is there")
    }

    /// Writes a file of the checkout.
    pub fn write(&self, file: &str, text: &str) {
        fs::write(self.root().join(file), text).expect("a file of a test can be written");
    }

    /// Reads a file of the checkout; nothing if it is not there.
    pub fn read(&self, file: &str) -> String {
        fs::read_to_string(self.root().join(file)).unwrap_or_default()
    }

    /// Commits all that is in the checkout.
    pub fn commit(&self, message: &str) {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--message", message]);
    }

    /// What a git command in the checkout prints.
    pub fn git(&self, args: &[&str]) -> String {
        git(&self.root(), args).unwrap_or_else(|problem| panic!("git {args:?}: {problem}"))
    }

    /// The files of a branch and their hashes, but for those that differ between two runs of the
    /// same project: the list holds times, the settings a path.
    pub fn content(&self, branch: &str) -> BTreeMap<String, String> {
        let listed = self.git(&["ls-tree", "-r", "--format=%(path) %(objectname)", branch]);
        let files = listed.lines().filter_map(|line| line.split_once(' '));
        let files =
            files.filter(|(path, _)| !matches!(*path, "feature_list.json" | "longhaul.toml"));
        files.map(|(path, hash)| (path.to_owned(), hash.to_owned())).collect()
    }

    /// The feature list of a branch without its times.
    pub fn list(&self, branch: &str) -> Value {
        let text = self.git(&["show", &format!("{branch}:feature_list.json")]);
        let mut list: Value = serde_json::from_str(&text).expect("the list is JSON");
        without_times(&mut list);
        list
    }

    /// The features that have landed on a branch, the last first.
    pub fn landed(&self, branch: &str) -> Vec<String> {
        let log = self.git(&[
            "log",
            "--first-parent",
            "--format=%(trailers:key=Feature-Id,valueonly)",
            branch,
        ]);
        log.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
    }

    /// Waits until the agent has committed something for a feature in its work tree.
    pub fn until_at_work(&self, feature: &str) {
        self.until_at_work_in(&self.home(), feature);
    }

    /// The same with another data directory.
    pub fn until_at_work_in(&self, home: &Path, feature: &str) {
        until(&format!("the agent works on {feature}"), || {
            let projects = fs::read_dir(home.join("worktrees")).into_iter().flatten().flatten();
            let mut trees = projects.map(|project| project.path().join(feature));
            trees.any(|tree| {
                // Not the repository around it, if there is one.
                let log = git(&tree, &["--git-dir=.git", "log", "--format=%s"]);
                log.is_ok_and(|log| log.contains(&format!("{feature}: step")))
            })
        });
    }

    /// Has the agent wait behind its next step for a feature until it is let go, whichever of its
    /// sessions that is in.
    pub fn hold(&self, feature: &str) {
        fs::write(self.hold_of(feature), "").expect("a file of a test can be written");
    }

    /// Lets the agent go on.
    pub fn let_go(&self, feature: &str) {
        fs::remove_file(self.hold_of(feature)).expect("it was held");
    }

    fn hold_of(&self, feature: &str) -> PathBuf {
        self.place().join(format!("hold-{feature}"))
    }

    /// What the agent wrote down. A process that was killed before it could write anything is not
    /// in it.
    pub fn marks(&self) -> Vec<Mark> {
        let entries = fs::read_dir(self.journal()).expect("the journal is there");
        entries.filter_map(|entry| mark(&entry.ok()?.path())).collect()
    }
}

fn mark(path: &Path) -> Option<Mark> {
    let text = fs::read_to_string(path).ok()?;
    let mut words = text.split_whitespace();
    let session = (words.next()?.to_owned(), words.next()?.parse().ok()?);
    let metadata = fs::metadata(path).ok()?;
    let began = metadata.modified().ok()?.into();
    // Another name leaves the content as old as it is.
    let last =
        DateTime::from_timestamp(metadata.ctime(), u32::try_from(metadata.ctime_nsec()).ok()?)?;
    Some(Mark { session, began, ended: path.extension().is_some(), last })
}

/// What a git command prints, or what it complains of.
pub fn git(dir: &Path, args: &[&str]) -> Result<String, String> {
    let output = Command::new("git")
        .arg("-C")
        .arg(dir)
        .args(args)
        .output()
        .map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(format!("{}: {}", output.status, String::from_utf8_lossy(&output.stderr)));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn without_times(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, _| {
                name != "last_tested" && !name.ends_with("_at") && !name.ends_with("updated")
            });
            fields.values_mut().for_each(without_times);
        }
        Value::Array(values) => values.iter_mut().for_each(without_times),
        _ => {}
    }
}
