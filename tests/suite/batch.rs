//! Batches: many projects under one id, submitted again, killed, handed over, reported.

mod orders;
mod terms;

use std::collections::BTreeSet;
use std::path::PathBuf;

use longhaul_engine::{RunId, RunReader, verify};
use longhaul_storage::SledStore;
use longhaul_tests::command::{Longhaul, Output};
use longhaul_tests::history::{Histories, workflows};
use longhaul_tests::project::{Habit, Plan, Project, plain};
use longhaul_tests::wait::until;
use serde_json::Value;
use tempfile::TempDir;

/// Projects, the file of a batch, and the command.
struct World {
    folder: TempDir,
    projects: Vec<Project>,
    longhaul: Longhaul,
}

impl World {
    fn new(projects: Vec<Project>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().canonicalize().unwrap().join("home");
        let longhaul = Longhaul::new(env!("CARGO_BIN_EXE_longhaul-under-test"), home);
        Self { folder, projects, longhaul }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    /// Writes a batch of all projects, called `p0`, `p1` …, with more for each of them.
    fn write(&self, head: &str, more: impl Fn(usize) -> String) -> String {
        self.write_some(self.projects.len(), head, more)
    }

    fn write_some(&self, count: usize, head: &str, more: impl Fn(usize) -> String) -> String {
        let mut text = format!("batch = \"nightly\"\n{head}\n");
        for (number, project) in self.projects.iter().enumerate().take(count) {
            let dir = project.root().to_string_lossy().into_owned();
            text +=
                &format!("[[project]]\nname = \"p{number}\"\ndir = {dir:?}\n{}\n", more(number));
        }
        let file = self.path("batch.toml");
        std::fs::write(&file, text).unwrap();
        file.to_string_lossy().into_owned()
    }

    fn batch(&self, file: &str, more: &[&str]) -> Output {
        let mut args = vec!["batch", file];
        args.extend(more);
        self.longhaul.call(&args)
    }

    /// When the sessions of all projects began, in order: the number of the project and the
    /// feature.
    fn starts(&self) -> Vec<(usize, String)> {
        let marks = |(number, project): (usize, &Project)| {
            let feature = |run: &str| run.split('/').nth(1).unwrap_or_default().to_owned();
            let marks = project.marks().into_iter();
            marks
                .map(move |mark| (mark.began, number, feature(&mark.session.0)))
                .collect::<Vec<_>>()
        };
        let mut starts: Vec<_> = self.projects.iter().enumerate().flat_map(marks).collect();
        starts.sort();
        starts.into_iter().map(|(_, number, feature)| (number, feature)).collect()
    }

    fn sessions(&self) -> usize {
        self.projects.iter().map(|project| project.marks().len()).sum()
    }
}

fn tiny() -> Project {
    Project::new(&[plain("parser", &[], 1)], 0.0)
}

fn states(report: &Value) -> Vec<String> {
    let projects = report["projects"].as_array().cloned().unwrap_or_default();
    projects
        .iter()
        .map(|project| project["state"].as_str().unwrap_or_default().to_owned())
        .collect()
}

#[test]
fn a_batch_runs_in_its_order_and_starts_nothing_twice() {
    let world =
        World::new(vec![tiny(), Project::new(&[plain("parser", &[], 3)], 0.1), tiny(), tiny()]);
    let after = |number| if number == 0 { "after = [\"p1\"]".to_owned() } else { String::new() };
    let file = world.write_some(3, "", after);
    let output = world.batch(&file, &["-o", "json"]);
    let report = output.exits(0).json();
    assert_eq!(
        (&report["schema"], states(&report)),
        (&"longhaul.batch/1".into(), vec!["done".to_owned(); 3])
    );
    let starts = world.starts();
    assert!(
        starts.iter().position(|start| start.0 == 1) < starts.iter().position(|start| start.0 == 0),
        "{starts:?}"
    );

    world.batch(&file, &[]).exits(0).says("joined it, nothing is started twice").says("3 done");
    assert_eq!(world.sessions(), 3);
    let file = world.write(" ", after);
    world.batch(&file, &[]).exits(0).says("1 of 4 projects are new");
    assert_eq!(world.sessions(), 4);
    let file = world.write("", |number| format!("priority = {number}"));
    world.batch(&file, &[]).exits(2).says("project `p1` has changed");
}

#[test]
fn all_errors_of_a_batch_file_are_reported_at_once() {
    let world = World::new(vec![tiny(), tiny(), tiny()]);
    let circle = world.write("", |number| format!("after = [\"p{}\"]", (number + 1) % 3));
    world.batch(&circle, &[]).exits(2).says("p0 -> p1 -> p2 -> p0");
    let unknown = world.write("", |_| "after = [\"p9\"]".into());
    world.batch(&unknown, &[]).exits(2).says("`p9`, which is not there");
    let settings = world.write("", |_| "limits = { patience = 3 }".into());
    world.batch(&settings, &[]).exits(2).says("patience");
    let limits = world.write("[limits]\nteam = 2", |_| String::new());
    world.batch(&limits, &[]).exits(2).says("label=value");
    let none = world.write("at_once = 0", |_| String::new());
    world.batch(&none, &[]).exits(2).says("nonzero");
    world.batch("nowhere.toml", &[]).exits(2).says("nowhere.toml");
    assert!(world.starts().is_empty());
}

#[test]
fn a_report_tells_what_passed_what_is_blocked_and_what_waits() {
    let never = Plan { id: "shell", needs: &[], steps: 1, habit: Habit::Never };
    let mixed = Project::new(&[never, plain("table", &["shell"], 1), plain("parser", &[], 1)], 0.0);
    let world = World::new(vec![tiny(), mixed, tiny()]);
    let more = |number| match number {
        1 => "limits = { failed_gates = 1 }".to_owned(),
        2 => "after = [\"p1\"]".to_owned(),
        _ => String::new(),
    };
    let file = world.write("", more);
    let junit = world.path("junit.xml");
    let output = world
        .batch(&file, &["--progress", "jsonl", "-o", "json", "--junit", &junit.to_string_lossy()]);
    let lines: Vec<Value> =
        output.exits(5).stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let (report, progress) = lines.split_last().unwrap();
    assert_eq!(states(report), ["done", "needs_attention", "waiting"]);
    assert!(progress.iter().all(|line| line["schema"] == "longhaul.progress/1"), "{progress:?}");
    assert!(
        progress.iter().any(|line| line["feature"] == "parser" && line["passes"] == true),
        "{progress:?}"
    );

    let text = std::fs::read_to_string(&junit).unwrap();
    let document = longhaul_tests::xml::parse(&text);
    assert_eq!(document.cases("p0"), [("parser".to_owned(), "passed".to_owned())]);
    let cases: BTreeSet<_> = document.cases("p1").into_iter().collect();
    let expected = [("parser", "passed"), ("shell", "failure"), ("table", "skipped")];
    assert_eq!(cases, expected.map(|(name, what)| (name.to_owned(), what.to_owned())).into());
    assert!(text.contains("grep -q finished shell.txt"), "{text}");
    for part in ["time=\"", "<system-out>", "The check"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let status = world.longhaul.call(&["batch", "status", "nightly", "-o", "json"]).exits(0).json();
    assert_eq!(states(&status), ["done", "needs_attention", "waiting"]);
    world.longhaul.call(&["batch", "status", "other"]).exits(2);
    assert_eq!(document.cases("p2"), [("parser".to_owned(), "skipped".to_owned())]);
}

#[test]
fn a_killed_batch_goes_on_where_it_was() {
    let plans = || Project::new(&[plain("parser", &[], 4), plain("table", &["parser"], 4)], 0.1);
    let world = World::new((0..4).map(|_| plans()).collect());
    let file = world.write("", |number| {
        if number == 3 { "after = [\"p0\", \"p1\"]".into() } else { String::new() }
    });
    let output = world.path("output");
    for kill in 0..4 {
        let mut life = world.longhaul.begin(&["batch", &file], &output);
        until("something is begun", || world.sessions() > kill * 2);
        life.kill();
    }
    world.batch(&file, &[]).exits(0).says("is known").says("4 done");
    for project in &world.projects {
        assert_eq!(project.landed("main"), ["table", "parser"]);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(check_log(&world));
}

/// The history of the batch decides the same again, and no session that had ended was run again.
async fn check_log(world: &World) {
    let store = SledStore::open(world.longhaul.home()).unwrap();
    let marks: Vec<_> = world.projects.iter().flat_map(Project::marks).collect();
    let counts = Histories::of(&store).await.unwrap().counts(&marks);
    assert_eq!(counts.repeated, 0, "{counts}");
    let run = RunId::new("batch/nightly").unwrap();
    let history = store.read(&run, 0).await.unwrap();
    assert!(history.len() > 10, "{} events", history.len());
    assert!(verify(&workflows(), &run, &history).unwrap().is_none());
}

#[test]
fn a_detached_batch_is_carried_on_in_the_background() {
    let world = World::new(vec![Project::new(&[plain("parser", &[], 5)], 0.1), tiny(), tiny()]);
    let file = world.write_some(1, "", |_| String::new());
    let detached = world.batch(&file, &["--detach", "-o", "json"]).exits(0).json();
    assert!(detached["process"].is_number() && detached["projects"] == 1, "{detached:#}");
    let file = world
        .write(" ", |number| if number > 0 { "after = [\"p0\"]".into() } else { String::new() });
    world.batch(&file, &["--detach"]).exits(0).says("2 of 3 projects are new");
    until("all of it is done", || {
        world.projects.iter().all(|project| project.landed("main") == ["parser"])
    });
    world.batch(&file, &[]).exits(0).says("3 done");
    assert_eq!(world.sessions(), 3);
}

#[test]
fn labels_and_settings_of_a_batch_reach_the_runs() {
    let approval = "settings = { merge = { approval = true } }\nlabels = { team = \"web\" }\nenv = { LONGHAUL_X = { env = \"USER\" } }";
    let world = World::new(vec![tiny(), tiny()]);
    let file = world.write("", |number| if number == 0 { approval.into() } else { String::new() });
    let report = world.batch(&file, &["-o", "json"]).exits(5).json();
    assert_eq!(states(&report), ["needs_attention", "done"]);
    let why = world.longhaul.call(&["why", "batch/nightly"]).exits(0).clone();
    why.says("p0 needs attention: parser: waits for a person: `longhaul approve")
        .says(&format!("`longhaul batch {file}` continues it"));
    assert!(
        !why.stdout.contains("message") && !why.stdout.contains("longhaul run"),
        "{}",
        why.stdout
    );
    world.longhaul.call(&["approve", "--filter", "label.team=ops"]).exits(0).says("no run matches");
    world
        .longhaul
        .call(&["approve", "--filter", "label.team=web", "--filter", "label.batch=nightly"])
        .exits(0);
    world.batch(&file, &[]).exits(0).says("2 done");
    world
        .longhaul
        .call(&["why", "batch/nightly"])
        .exits(0)
        .says("It is done: all features of its 2 projects pass.");
}

#[test]
fn a_dozen_tiny_projects_are_done_under_one_id() {
    let world = World::new((0..12).map(|_| tiny()).collect());
    let file =
        world.write(
            "",
            |number| if number % 6 == 5 { "after = [\"p0\"]".into() } else { String::new() },
        );
    world.batch(&file, &["--progress", "none"]).exits(0).says("12 done");
    assert_eq!(world.sessions(), 12);
}

#[test]
fn a_large_project_does_not_starve_a_small_one_and_priorities_count() {
    const BIG: [Plan; 8] = [
        plain("a", &[], 2),
        plain("b", &[], 2),
        plain("c", &[], 2),
        plain("d", &[], 2),
        plain("e", &[], 2),
        plain("f", &[], 2),
        plain("g", &[], 2),
        plain("h", &[], 2),
    ];
    let small = || Project::new(&[plain("a", &[], 2), plain("b", &[], 2)], 0.3);
    let world = World::new(vec![Project::new(&BIG, 0.3), small(), small()]);
    for project in &world.projects {
        for plan in BIG {
            project.hold(plan.id);
        }
    }
    let file = world.write("", |number| match number {
        2 => "priority = 7".into(),
        _ => "parallel = 8".into(),
    });
    let mut batch = world
        .longhaul
        .begin(&["batch", &file, "--max-agents", "1", "--progress", "none"], &world.path("output"));
    // Most of them have no work tree before an agent is about to be free.
    let is_waiting =
        |line: &Value| ["work tree", "session 1"].map(Value::from).contains(&line["step"]);
    let wants_an_agent = |project: &Project| {
        let status = world.longhaul.status(&project.root());
        status["features"].as_array().is_some_and(|lines| lines.iter().all(is_waiting))
    };
    until("all want an agent", || world.projects.iter().all(wants_an_agent));
    for project in &world.projects {
        for plan in BIG {
            project.let_go(plan.id);
        }
    }
    batch.exits(0);
    let starts: Vec<usize> = world.starts().into_iter().map(|(project, _)| project).collect();
    let places = |project| -> Vec<usize> {
        starts
            .iter()
            .enumerate()
            .filter(|(_, started)| **started == project)
            .map(|(place, _)| place)
            .collect()
    };
    let (usual, urgent) = (places(1), places(2));
    // At most the session that had the only place goes before, and one between that of each of the
    // two.
    assert!(urgent[1] - urgent[0] <= 2 && urgent[1] <= 5, "{starts:?}");
    assert!(usual[1] - usual[0] <= 4 && usual[1] <= 7, "{starts:?}");
}
