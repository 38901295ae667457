//! Rolling a project back: the target, its checkout and the log together.

use std::time::Duration;

use longhaul_tests::project::{Plan, Project, plain};
use longhaul_tests::wait::until;
use serde_json::json;

use super::world::World;

/// Three that land one after another.
const PLANS: [Plan; 3] =
    [plain("parser", &[], 1), plain("table", &["parser"], 1), plain("shell", &["table"], 1)];

fn rollback(world: &World, to: &str) -> longhaul_tests::command::Output {
    world.call(&["rollback", &world.root, "--to", to, "--reason", "it went wrong", "--yes"])
}

#[test]
fn a_project_goes_back_to_where_a_feature_landed_and_on_again() {
    let world = World::new(&PLANS, 0.0, "");
    world.run().exits(0);
    let (content, tip) = (world.project.content("main"), world.project.git(&["rev-parse", "main"]));
    rollback(&world, "parser").exits(0).says("to be done again: shell, table");
    assert_eq!(world.project.landed("main"), ["parser"]);
    assert_eq!(world.project.read("table.txt"), "");
    assert_eq!(
        world.project.git(&["for-each-ref", "--format=%(objectname)", "refs/longhaul/rolled-back"]),
        tip
    );
    assert_eq!(world.line("table")["status"], "pending");
    let status = world.longhaul.status(world.root.as_ref());
    assert_eq!(
        (&status["status"], &status["stopped_by"]["why"]),
        (&json!("waiting"), &json!("it went wrong"))
    );

    world.run().exits(0);
    assert_eq!(world.project.content("main"), content);
    assert_eq!(
        (world.sessions(&world.id("table", 2)), world.sessions(&world.id("parser", 2))),
        (1, 0)
    );
    assert_eq!(world.project.landed("main"), ["shell", "table", "parser"]);
    world.histories();
}

#[test]
fn projects_are_rolled_back_by_id_and_by_filter() {
    let world = World::new(&PLANS, 0.0, "");
    world.run().exits(0);
    let tip = world.project.git(&["rev-parse", "main"]);
    let id = world.id("parser", 1).split('/').next().unwrap().to_owned();
    let by_filter =
        ["rollback", "--filter", &format!("project={id}"), "--to", "parser", "--dry-run"];
    world.call(&by_filter).exits(0).says("to be done again: table, shell").says("1 project");
    let json = [&by_filter[..], &["-o", "json"]].concat();
    let document = world.call(&json).exits(0).json();
    assert_eq!(document["schema"], "longhaul.rollbacks/1");
    assert_eq!(document["rollbacks"][0]["project"], json!(id));
    world
        .call(&["rollback", &id, "--to", "parser"])
        .exits(2)
        .says("2 features would be done again");
    assert_eq!(world.project.git(&["rev-parse", "main"]), tip);
    let several = ["rollback", &id, &world.root, "--to", "nonsense", "--yes"];
    world.call(&several).exits(2).says("not rolled back: `nonsense` is no commit");
    world.call(&["rollback", &id, "--to", "parser", "--yes"]).exits(0).says("rolled back to");
    assert_eq!(world.project.landed("main"), ["parser"]);
}

#[test]
fn a_checkout_with_changes_and_a_commit_of_elsewhere_are_refused() {
    let world = World::new(&PLANS, 0.0, "");
    rollback(&world, "parser").exits(2).says("nothing has run yet");
    world.run().exits(0);
    let tip = world.project.git(&["rev-parse", "main"]);
    world.project.write("README.md", "What I am writing just now.\n");
    rollback(&world, "parser").exits(3).says("README.md");
    assert_eq!(world.project.read("README.md"), "What I am writing just now.\n");
    world.project.git(&["checkout", "--quiet", "README.md"]);
    world.project.git(&["branch", "side", "main~1"]);
    rollback(&world, "nonsense").exits(2).says("`nonsense` is no commit");
    let side = world.project.git(&["commit-tree", "-m", "aside", "main^{tree}"]);
    rollback(&world, &side).exits(2).says("is not on `main`");
    world.call(&["pause", &world.root]).exits(0);
    rollback(&world, "parser").exits(3).says("longhaul resume");
    assert_eq!(world.project.git(&["rev-parse", "main"]), tip);
    assert_eq!(world.longhaul.status(world.root.as_ref())["counts"]["passed"], 3);
}

#[test]
fn an_ignored_file_that_the_older_commit_has_is_not_overwritten() {
    let world = World::new(&PLANS, 0.0, "");
    world.project.write("local.env", "the example\n");
    world.project.commit("Add an example");
    let example = world.project.git(&["rev-parse", "main"]);
    world.project.git(&["rm", "--quiet", "local.env"]);
    world.project.write(".gitignore", "local.env\n");
    world.project.commit("Ignore local settings");
    world.project.write("local.env", "mine\n");
    world.run().exits(0);
    rollback(&world, &example).exits(3).says("local.env");
    assert_eq!(world.project.read("local.env"), "mine\n");
    assert_eq!(world.project.landed("main"), ["shell", "table", "parser"]);
}

#[test]
fn a_running_project_is_halted_first_and_work_on_what_is_undone_begins_anew() {
    let plans =
        [plain("parser", &[], 1), plain("table", &["parser"], 2), plain("shell", &["parser"], 2)];
    let world = World::new(&plans, 0.0, "");
    world.project.hold("table");
    world.project.hold("shell");
    let mut run = world.begin(&["run", &world.root]);
    world.project.until_at_work("table");
    let first = world.project.git(&["rev-list", "--max-parents=0", "main"]);
    rollback(&world, &first).exits(0).says("to be done again: parser");
    run.exits(3);
    assert_eq!(world.project.git(&["rev-parse", "main"]), first);
    assert_eq!(
        world.project.git(&["branch", "--format=%(refname:short)"]),
        "main",
        "what stood on it is closed"
    );
    assert_eq!(world.project.read("parser.txt"), "");
    until("the agents are gone", || world.longhaul.left_over().is_empty());
    world.project.let_go("table");
    world.project.let_go("shell");
    world.run().exits(0);
    let mut landed = world.project.landed("main");
    landed.sort_unstable();
    assert_eq!(landed, ["parser", "shell", "table"]);
    world.histories();
}

/// The verbs that a person may use on a closed project; each has a response.
const VERBS: [&str; 12] = [
    "status .",
    "list",
    "why .",
    "pause .",
    "resume .",
    "cancel .",
    "terminate .",
    "resume <project>/parser/1",
    "restart <project>/parser/1",
    "steer <project>/parser/1 hurry",
    "feature block parser --why no --dir .",
    "checkpoint <project>/parser/1 --note x",
];

#[test]
fn a_terminated_project_responds_and_is_rolled_back() {
    for is_run in [true, false] {
        let world = World::new(&[plain("shell", &[], 1), plain("parser", &[], 1)], 0.0, "");
        let other = Project::new(&[plain("wait", &[], 1)], 0.0);
        other.hold("wait");
        world.project.hold("parser");
        // The other project keeps the process up.
        let mut run = world.begin(&["run", &world.root, &other.root().to_string_lossy()]);
        world.project.until_at_work("parser");
        until("the shell has landed", || world.line("shell")["passes"] == true);
        world.call(&["terminate", &world.root, "--why", "enough"]).exits(0);
        if !is_run {
            run.terminate();
            run.exits(3);
        }
        let id = world.project.git(&["config", "longhaul.id"]);
        for verb in VERBS {
            let word = |word: &str| match word {
                "." => world.root.clone(),
                word => word.replace("<project>", &id),
            };
            let words: Vec<String> = verb.split(' ').map(word).collect();
            let output = world.call(&words.iter().map(String::as_str).collect::<Vec<_>>());
            assert!(matches!(output.code(), 0..=3), "{verb}: {}\n{}", output.code(), output.stderr);
        }
        let block = ["feature", "block", "parser", "--why", "no", "--dir", &world.root];
        world.call(&block).exits(3).says("is closed").says("longhaul run");
        let first = world.project.git(&["rev-list", "--max-parents=0", "main"]);
        let sessions = world.project.marks().len();
        rollback(&world, &first).exits(0).says("to be done again: shell");
        assert_eq!(world.project.git(&["rev-parse", "main"]), first);
        let status = world.longhaul.status(world.root.as_ref());
        assert_eq!(status["rolled_back_to"], first.as_str(), "{status:#}");
        assert_eq!(world.project.marks().len(), sessions, "nothing is begun");
        if is_run {
            run.terminate();
            run.exits(3);
        }
        world.project.let_go("parser");
        world.run().exits(0);
        assert_eq!(world.project.landed("main").len(), 2);
        world.histories();
    }
}

/// An agent that goes on after a request to end, until the test lets it go.
const STUBBORN: &str = r#"
place=$LONGHAUL_TEST_JOURNAL/..
trap ': >"$place/told"' TERM
: >"$place/ready"
until [ -e "$place/go" ]; do sleep 0.05 || :; done
exit 0
"#;

#[test]
fn a_rollback_does_not_wait_for_a_person() {
    let world = World::new(&[plain("parser", &[], 1), plain("table", &["parser"], 1)], 0.0, "");
    world.project.write("plan/table", STUBBORN);
    world.project.commit("Be stubborn");
    let first = world.project.git(&["rev-parse", "main"]);
    let mut run = world.begin(&["run", &world.root]);
    let is_there = |file: &str| world.project.place().join(file).exists();
    until("the agent is at work", || is_there("ready"));
    let mut rollback = world.begin(&["rollback", &world.root, "--to", &first, "--yes"]);
    until("the agent gets SIGTERM", || is_there("told"));
    // The pause precedes the end of the agent, so the project does not take the end.
    world.call(&["pause", &world.root]).exits(0);
    std::fs::write(world.project.place().join("go"), "").unwrap();
    rollback.exits(3);
    run.exits(3);
    assert!(rollback.output().contains("is paused: `longhaul resume"), "{}", rollback.output());
    assert_eq!(world.longhaul.status(world.root.as_ref())["status"], "paused");
    world.call(&["resume", &world.root]).exits(0);
    world.project.write("plan/table", "steps=1 pause=0 habit=plain\n");
    world.project.commit("Be plain");
    world.histories();
}

#[test]
fn a_killed_rollback_is_finished_by_the_next_owner() {
    let world = World::new(&PLANS, 0.0, "");
    world.run().exits(0);
    let content = world.project.content("main");
    for delay in [30, 60, 90, 120, 150, 200, 250, 300] {
        let mut rollback = world.begin(&["rollback", &world.root, "--to", "parser", "--yes"]);
        rollback.wait_for(Duration::from_millis(delay));
        rollback.kill();
        world.run().exits(0);
        assert_eq!(world.project.content("main"), content, "killed after {delay} ms");
        assert_eq!(world.longhaul.status(world.root.as_ref())["counts"]["passed"], 3);
    }
    rollback(&world, "table").exits(0).says("to be done again: shell");
    assert_eq!(world.project.landed("main"), ["table", "parser"]);
    world.histories();
}

#[test]
fn a_project_stays_halted_when_the_rollback_changes_its_list() {
    let world = World::new(&[plain("parser", &[], 1), plain("table", &["parser"], 1)], 0.0, "");
    world.run().exits(0);
    let check = "grep -q finished shell.txt";
    world
        .call(&["feature", "add", "shell", "A shell", "--check", check, "--dir", &world.root])
        .exits(0);
    world.project.commit("Ask for a shell");
    // Another project keeps the process up, which looks at the lists of both.
    let other = Project::new(&[plain("wait", &[], 1)], 0.0);
    other.hold("wait");
    let run = world.begin(&["run", &world.root, &other.root().to_string_lossy()]);
    until("the shell has landed", || world.line("shell")["passes"] == true);
    until("the list says so", || world.project.git(&["status", "--porcelain"]).is_empty());
    other.until_at_work_in(world.longhaul.home(), "wait");
    rollback(&world, "parser").exits(0).says("table");
    assert!(
        !world.project.read("feature_list.json").contains("shell"),
        "the list of then has no shell"
    );
    let status = || world.longhaul.status(world.root.as_ref());
    until("the list is read again", || status()["features"].as_array().map(Vec::len) == Some(2));
    assert_eq!(status()["status"], "cancelled", "{:#}", status());
    assert_eq!(world.project.landed("main"), ["parser"]);

    // An edit of the list by hand is taken up, and lifts nothing either.
    let edited = world.project.read("feature_list.json").replace("Feature table", "A table");
    world.project.write("feature_list.json", &edited);
    let name = || world.longhaul.status(world.root.as_ref())["features"][1]["name"].clone();
    until("the edit is taken up", || name() == "A table");
    assert_eq!(world.longhaul.status(world.root.as_ref())["status"], "cancelled");
    run.terminate();
}
