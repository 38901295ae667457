//! The commands of `longhaul` and their exit codes, while another process runs the log and while
//! none does.

use std::path::{Path, PathBuf};

use longhaul_tests::command::{Longhaul, Output, Running};
use longhaul_tests::project::{Habit, Plan, Project, plain};
use longhaul_tests::wait::until;
use serde_json::Value;

/// A project and the command.
struct World {
    project: Project,
    longhaul: Longhaul,
    root: String,
}

impl World {
    fn new(plans: &[Plan], pause: f32) -> Self {
        Self::with_settings(plans, pause, "")
    }

    fn with_settings(plans: &[Plan], pause: f32, settings: &str) -> Self {
        let project = Project::with_settings(plans, pause, settings);
        let longhaul = Longhaul::new(env!("CARGO_BIN_EXE_longhaul-under-test"), project.home());
        let root = project.root().to_string_lossy().into_owned();
        Self { project, longhaul, root }
    }

    /// Runs a command on the project.
    fn call(&self, command: &[&str]) -> Output {
        let mut args = command.to_vec();
        args.push(&self.root);
        self.longhaul.call(&args)
    }

    /// Starts `longhaul run` in a process of its own.
    fn begin(&self, output: &str) -> Running {
        self.longhaul.begin(&["run", &self.root], &self.project.place().join(output))
    }

    fn status(&self) -> Value {
        self.longhaul.status(Path::new(&self.root))
    }

    /// What the status says of a feature.
    fn line(&self, feature: &str) -> Value {
        let status = self.status();
        let lines = status["features"].as_array().cloned().unwrap_or_default();
        lines.into_iter().find(|line| line["id"] == feature).unwrap_or_default()
    }

    fn landed(&self, branch: &str) -> Vec<String> {
        let mut landed = self.project.landed(branch);
        landed.sort_unstable();
        landed
    }
}

#[test]
fn others_ask_and_join_while_one_runs() {
    let world = World::new(&[plain("parser", &[], 2), plain("table", &["parser"], 1)], 0.0);
    world.project.hold("parser");
    let mut run = world.begin("first");
    world.project.until_at_work("parser");
    let status = world.status();
    assert_eq!(
        (&status["is_running"], &status["status"]),
        (&true.into(), &"running".into()),
        "{status:#}"
    );
    let line = world.line("parser");
    assert_eq!(
        (&line["status"], &line["step"]),
        (&"running".into(), &"session 1".into()),
        "{line:#}"
    );
    assert_eq!(world.line("table")["waiting_for"], serde_json::json!(["parser"]));

    let mut second = world.begin("second");
    until("the second run joins", || second.output().contains("joined it"));
    let add = [
        "feature",
        "add",
        "manual",
        "A manual",
        "--check",
        "grep -q finished manual.txt",
        "--dir",
        &world.root,
    ];
    world.longhaul.call(&add).exits(0).says("added manual");
    until("the new feature is done too", || world.line("manual")["passes"] == true);
    world.longhaul.call(&add).exits(2).says("manual");

    world.project.let_go("parser");
    run.exits(0);
    second.exits(0);
    assert_eq!(world.landed("main"), ["manual", "parser", "table"]);
    let status = world.status();
    assert_eq!(
        (&status["is_running"], &status["status"]),
        (&false.into(), &"done".into()),
        "{status:#}"
    );
    world.call(&["run"]).exits(0).says("3 of 3 features pass");
}

#[test]
fn who_joined_takes_over_when_the_other_ends() {
    let world = World::new(&[plain("parser", &[], 3)], 0.0);
    world.project.hold("parser");
    let mut first = world.begin("first");
    world.project.until_at_work("parser");
    let mut second = world.begin("second");
    until("the second run joins", || second.output().contains("joined it"));
    first.terminate();
    first.exits(3);
    world.project.let_go("parser");
    second.exits(0);
    assert_eq!(second.output().matches("joined it").count(), 1, "{}", second.output());
    assert_eq!(world.landed("main"), ["parser"]);
}

#[test]
fn a_paused_project_ends_its_session_and_goes_on_when_resumed() {
    let world = World::new(&[plain("parser", &[], 2), plain("table", &["parser"], 1)], 0.0);
    world.project.hold("parser");
    let mut run = world.begin("first");
    world.project.until_at_work("parser");
    world.call(&["pause", "--reason", "lunch"]).exits(0).says("paused");
    world.project.let_go("parser");
    run.exits(3);
    let status = world.status();
    assert_eq!(
        (&status["status"], &status["stopped_by"]["why"]),
        (&"paused".into(), &"lunch".into()),
        "{status:#}"
    );
    assert_eq!(world.landed("main"), Vec::<String>::new());
    world.call(&["run"]).exits(3).says("lunch");

    world.call(&["resume"]).exits(0).says("resumed");
    world.call(&["run"]).exits(0);
    assert_eq!(world.landed("main"), ["parser", "table"]);
    assert_eq!(world.project.marks().len(), 2, "the session before the pause was not run again");
}

#[test]
fn a_paused_project_is_resumed_while_it_runs() {
    let world = World::new(&[plain("parser", &[], 2)], 0.0);
    world.project.hold("parser");
    let mut run = world.begin("first");
    world.project.until_at_work("parser");
    world.call(&["pause"]).exits(0);
    until("the pause is seen", || world.status()["status"] == "paused");
    world.call(&["resume"]).exits(0);
    world.project.let_go("parser");
    run.exits(0);
    assert_eq!(world.landed("main"), ["parser"]);
}

#[test]
fn a_cancelled_project_stops_at_once_and_can_be_run_again() {
    let world = World::new(&[plain("parser", &[], 3), plain("table", &[], 1)], 0.0);
    world.project.hold("parser");
    let mut run = world.begin("first");
    world.project.until_at_work("parser");
    world.call(&["cancel", "--reason", "too dear"]).exits(0).says("cancelled");
    run.exits(3);
    world.project.let_go("parser");
    until("the agents are gone", || world.longhaul.left_over().is_empty());
    let status = world.status();
    assert_eq!(
        (&status["status"], &status["stopped_by"]["why"]),
        (&"cancelled".into(), &"too dear".into()),
        "{status:#}"
    );
    assert_ne!(world.line("parser")["passes"], true);
    world.call(&["run"]).exits(0);
    assert_eq!(world.landed("main"), ["parser", "table"]);
}

#[test]
fn sigterm_ends_the_agents_and_leaves_runs_that_can_be_steered_at_rest() {
    let world = World::new(&[plain("parser", &[], 3), plain("table", &["parser"], 1)], 0.0);
    world.project.hold("parser");
    let mut run = world.begin("first");
    world.project.until_at_work("parser");
    run.terminate();
    run.exits(3);
    world.project.let_go("parser");
    assert!(run.output().contains("nothing is lost"), "{}", run.output());
    until("the agents are gone", || world.longhaul.left_over().is_empty());
    assert_eq!(world.status()["is_running"], false);

    world.call(&["pause"]).exits(0);
    assert_eq!(world.status()["pending"][0]["what"], "pause");
    world.call(&["run"]).exits(3);
    world.call(&["resume"]).exits(0);
    world.call(&["cancel"]).exits(0);
    let add = [
        "feature",
        "add",
        "manual",
        "A manual",
        "--check",
        "grep -q finished manual.txt",
        "--dir",
        &world.root,
    ];
    world.longhaul.call(&add).exits(0);
    world.call(&["run"]).exits(0);
    assert_eq!(world.landed("main"), ["manual", "parser", "table"]);
}

#[test]
fn a_checkout_with_changes_is_left_alone_and_finished_work_waits() {
    let world = World::new(&[plain("parser", &[], 1), plain("table", &["parser"], 1)], 0.0);
    world.project.write("README.md", "What I am writing just now.\n");
    let before = world.project.git(&["rev-parse", "main"]);
    world.call(&["run"]).exits(3).says("README.md");
    assert_eq!(world.project.git(&["rev-parse", "main"]), before);
    assert_eq!(world.landed("longhaul/next"), ["parser", "table"]);
    assert_eq!(world.project.read("README.md"), "What I am writing just now.\n");
    assert_eq!(world.project.read("parser.txt"), "");
    world.call(&["run"]).exits(3).says("longhaul/next");

    world.project.git(&["checkout", "--quiet", "README.md"]);
    world.call(&["run"]).exits(0);
    assert_eq!(world.landed("main"), ["parser", "table"]);
    assert_eq!(world.project.git(&["branch", "--format=%(refname:short)"]), "main");
    assert_eq!(world.project.read("parser.txt"), "step 1\nfinished\n");
    assert_eq!(world.project.git(&["status", "--porcelain"]), "");
}

#[test]
fn a_blocked_feature_holds_up_what_needs_it_and_nothing_else() {
    let never = Plan { id: "parser", needs: &[], steps: 1, habit: Habit::Never };
    let plans = [never, plain("table", &["parser"], 1), plain("manual", &[], 1)];
    let world = World::with_settings(&plans, 0.0, "[limits]\nfailed_gates = 2\n");
    world.call(&["run"]).exits(1).says("1 blocked");
    assert_eq!(world.landed("main"), ["manual"]);
    let line = world.line("parser");
    assert_eq!((&line["status"], &line["sessions"]), (&"blocked".into(), &2.into()), "{line:#}");
    assert!(
        line["reason"]
            .as_str()
            .is_some_and(|reason| reason.contains("grep -q finished parser.txt")),
        "{line:#}"
    );
    let line = world.line("table");
    assert_eq!(
        (&line["status"], &line["waiting_for"]),
        (&"waiting".into(), &serde_json::json!(["parser"])),
        "{line:#}"
    );
    world.call(&["run"]).exits(1);
    assert_eq!(world.project.marks().len(), 3, "a blocked feature is not tried again unasked");
    world.longhaul.call(&["feature", "unblock", "parser", "--dir", &world.root]).exits(0);
    world.call(&["run"]).exits(1);
    assert_eq!(world.project.marks().len(), 5);
}

#[test]
fn what_cannot_be_run_says_why() {
    let world = World::new(&[plain("parser", &[], 1)], 0.0);
    let nowhere: PathBuf = world.project.place().join("nowhere");
    std::fs::create_dir(&nowhere).unwrap();
    let nowhere = nowhere.to_string_lossy();
    world.longhaul.call(&["run", &nowhere]).exits(2).says("is not in a git repository");
    world.longhaul.call(&["status", &nowhere]).exits(2).says("is not in a git repository");
    world.call(&["pause"]).exits(2).says("nothing has run yet");
    world.call(&["status"]).exits(0).says("never run");
    world.longhaul.call(&["run", "--no-such-option"]).exits(2);
    world.longhaul.call(&["run", &world.root, &nowhere]).exits(5);

    world.longhaul.call(&["cancel", "nobody/at-all/1"]).exits(2).says("nobody/at-all/1");
    world.longhaul.call(&["reconcile", "nobody", "--happened"]).exits(2).says("nobody");
    world
        .longhaul
        .call(&["feature", "show", "nothing", "--dir", &world.root])
        .exits(2)
        .says("nothing");
    let elsewhere = Longhaul::new(env!("CARGO_BIN_EXE_longhaul-under-test"), "/dev/null/home");
    elsewhere.call(&["run", &world.root]).exits(4).says("/dev/null");
}

#[test]
fn a_list_that_goes_in_a_circle_is_refused_with_its_path() {
    let circle = [
        plain("parser", &["shell"], 1),
        plain("table", &["parser"], 1),
        plain("shell", &["table"], 1),
    ];
    let world = World::new(&circle, 0.0);
    let output = world.call(&["run"]);
    output.exits(2).says("cycle");
    let path = output.stderr.lines().find(|line| line.contains("cycle")).unwrap_or_default();
    for feature in ["parser", "table", "shell"] {
        assert!(path.contains(feature), "{path}");
    }
    assert!(world.project.marks().is_empty());
    world.call(&["status"]).exits(0).says("cycle");
    world.call(&["doctor"]).exits(1).says("cycle");
}
