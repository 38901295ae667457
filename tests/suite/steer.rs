//! Telling runs something: the steering verbs, on a log that another process runs and on one at
//! rest.

use std::path::Path;

use longhaul_tests::command::{Longhaul, Output, Running};
use longhaul_tests::project::{Habit, Plan, Project, plain};
use longhaul_tests::wait::until;
use serde_json::{Value, json};

/// A project and the command.
struct World {
    project: Project,
    longhaul: Longhaul,
    root: String,
}

impl World {
    fn new(plans: &[Plan], pause: f32, settings: &str) -> Self {
        let project = Project::with_settings(plans, pause, settings);
        let longhaul = Longhaul::new(env!("CARGO_BIN_EXE_longhaul-under-test"), project.home());
        let root = project.root().to_string_lossy().into_owned();
        Self { project, longhaul, root }
    }

    /// Has the agent keep each prompt that it is given.
    fn keep_prompts(&self, feature: &str) {
        let plan = self.project.read(&format!("plan/{feature}"));
        let keep = "cat \"$LONGHAUL_PROMPT_FILE\" >\"$LONGHAUL_TEST_JOURNAL/../prompt-$LONGHAUL_SESSION\"\n";
        self.project.write(&format!("plan/{feature}"), &(plan + keep));
        self.project.commit("Keep the prompts");
    }

    fn prompt(&self, session: u32) -> String {
        std::fs::read_to_string(self.project.place().join(format!("prompt-{session}")))
            .unwrap_or_default()
    }

    /// Runs a verb; features are those of the project.
    fn tell(&self, words: &[&str]) -> Output {
        let mut args = words.to_vec();
        args.extend(["--dir", &self.root]);
        self.longhaul.call(&args)
    }

    fn run(&self) -> Output {
        self.longhaul.call(&["run", &self.root])
    }

    fn begin(&self, output: &str) -> Running {
        self.longhaul.begin(&["run", &self.root], &self.project.place().join(output))
    }

    fn line(&self, feature: &str) -> Value {
        let status = self.longhaul.status(Path::new(&self.root));
        let lines = status["features"].as_array().cloned().unwrap_or_default();
        lines.into_iter().find(|line| line["id"] == feature).unwrap_or_default()
    }
}

/// The runs that got the request, and the others, by the answer of a command.
fn delivered(output: &Output) -> (Vec<String>, Vec<String>) {
    let answer = output.json();
    assert_eq!(answer["schema"], "longhaul.order/1");
    let runs = answer["runs"].as_array().cloned().unwrap_or_default();
    let (yes, no): (Vec<Value>, Vec<Value>) = runs
        .into_iter()
        .partition(|run| run["result"].as_str().is_some_and(|result| result.contains("deliver")));
    let names = |runs: Vec<Value>| {
        runs.iter().map(|run| run["run"].as_str().unwrap_or_default().to_owned()).collect()
    };
    (names(yes), names(no))
}

#[test]
fn a_feature_waits_for_approval_and_goes_back_when_it_is_denied() {
    let world = World::new(
        &[plain("parser", &[], 1), plain("table", &[], 1)],
        0.0,
        "[merge]\napproval = true\n",
    );
    world.keep_prompts("parser");
    world.run().exits(3);
    let line = world.line("parser");
    assert_eq!(
        (&line["step"], &line["needs_person"]),
        (&"waiting for approval".into(), &true.into()),
        "{line:#}"
    );
    assert!(world.project.landed("main").is_empty());
    world.tell(&["why", "parser"]).exits(0).says("a person has to agree before it is merged");
    world.tell(&["deny", "parser"]).exits(2).says("--why");
    world.tell(&["approve", "nothing"]).exits(2).says("the log knows no run or feature `nothing`");
    world.tell(&["approve", "parser", "nothing"]).exits(5).says("when its project runs next");
    world.tell(&["approve", "parser"]).exits(2).says("an answer in its mailbox already");
    world.run().exits(3);
    assert_eq!(world.project.landed("main"), ["parser"]);
    assert_eq!(world.line("table")["step"], "waiting for approval");

    // Something else is being done, so that the process that runs it stays.
    world.project.hold("shell");
    let check = "grep -q finished shell.txt";
    world
        .longhaul
        .call(&["feature", "add", "shell", "A shell", "--check", check, "--dir", &world.root])
        .exits(0);
    world.project.commit("Ask for a shell");
    let mut run = world.begin("second");
    world.project.until_at_work("shell");
    let deny = ["deny", "table", "--why", "wider columns, please", "--by", "ann", "-o", "json"];
    let output = world.tell(&deny);
    assert_eq!(
        (&output.json()["by"], &output.json()["why"]),
        (&"ann".into(), &"wider columns, please".into())
    );
    until("it was gone over", || {
        let line = world.line("table");
        (&line["step"], &line["sessions"]) == (&"waiting for approval".into(), &2.into())
    });
    world.project.let_go("shell");
    run.exits(3);
    world.tell(&["approve", "--filter", "kind=feature", "--yes"]).exits(0).says("approved");
    world.run().exits(0);
    assert_eq!(world.project.landed("main").len(), 3);
    assert!(!world.prompt(1).contains("does not want it merged"));
}

#[test]
fn one_feature_may_ask_for_approval_by_itself_and_denials_have_an_end() {
    let world = World::new(
        &[plain("parser", &[], 1), plain("table", &[], 1)],
        0.0,
        "[limits]\nfailed_gates = 2\n",
    );
    world.keep_prompts("parser");
    let list = world.project.read("feature_list.json");
    world.project.write(
        "feature_list.json",
        &list.replacen("\"id\": \"parser\"", "\"approval\": true, \"id\": \"parser\"", 1),
    );
    world.project.commit("Ask for approval");
    world.run().exits(3);
    assert_eq!(world.project.landed("main"), ["table"]);
    let run = world.line("parser")["run"].as_str().unwrap_or_default().to_owned();
    world.longhaul.call(&["deny", &run, "--why", "no tabs, please"]).exits(0);
    world.run().exits(3);
    assert!(
        world.prompt(2).contains("tester looked at it and does not want it merged as it is"),
        "{}",
        world.prompt(2)
    );
    assert!(world.prompt(2).contains("no tabs, please"), "{}", world.prompt(2));
    world.longhaul.call(&["deny", &run, "--why", "still tabs"]).exits(0);
    world.run().exits(1);
    let line = world.line("parser");
    assert!(
        line["reason"].as_str().is_some_and(|reason| reason.contains("still tabs")),
        "{line:#}"
    );
}

#[test]
fn what_a_person_says_reaches_the_agent_at_its_next_turn() {
    let repairs = Plan { id: "parser", needs: &[], steps: 2, habit: Habit::Repairs };
    let world = World::new(&[repairs], 0.0, "");
    world.keep_prompts("parser");
    world.project.hold("parser");
    let mut run = world.begin("first");
    world.project.until_at_work("parser");
    world
        .tell(&["steer", "parser", "write it with tabs", "--why", "house style"])
        .exits(0)
        .says("steered");
    world.longhaul.call(&["signal", "nobody/at-all/1", "note"]).exits(2);
    let note =
        ["signal", "parser", "note", "\"and keep it short\"", "--by", "ann", "--why", "it is long"];
    world.tell(&note).exits(0).says("signalled");
    let described = world.tell(&["describe", "parser", "-o", "json"]).json();
    assert_eq!(
        (&described["mailbox"][1]["by"], &described["mailbox"][1]["why"]),
        (&"ann".into(), &"it is long".into())
    );
    world.tell(&["signal", "parser", "note", "and keep it short"]).exits(2).says("is not JSON");
    world
        .tell(&["signal", "parser", "longhaul.terminate"])
        .exits(2)
        .says("takes `note`, `approval`");
    world.project.let_go("parser");
    run.exits(0);
    assert!(!world.prompt(1).contains("with tabs"));
    for text in ["From a person: write it with tabs", "From a person: and keep it short"] {
        assert!(world.prompt(2).contains(text), "{}", world.prompt(2));
    }
    world.tell(&["steer", "parser", "too late"]).exits(2).says("is over");
    let history = world.tell(&["history", "parser"]);
    history.says("a note for the agent: write it with tabs, by tester: house style");
    history.says("a note for the agent: and keep it short, by ann: it is long");
    let audit = world.tell(&["describe", "parser", "-o", "json"]).json()["audit"].clone();
    assert_eq!(
        (&audit[1]["what"], &audit[1]["by"], &audit[1]["why"]),
        (&"note".into(), &"ann".into(), &"it is long".into())
    );
}

#[test]
fn a_terminated_run_is_over_at_once_and_a_terminated_project_can_be_run_again() {
    let world = World::new(&[plain("parser", &[], 5), plain("table", &[], 1)], 0.0, "");
    world.project.hold("parser");
    let mut run = world.begin("first");
    world.project.until_at_work("parser");
    let id = world.line("parser")["run"].as_str().unwrap_or_default().to_owned();
    let output =
        world.longhaul.call(&["terminate", &id, "--why", "it runs in circles", "-o", "json"]);
    assert_eq!(delivered(output.exits(0)), (vec![id.clone(), format!("{id}/1")], vec![]));
    until("its agent is gone", || world.longhaul.left_over().is_empty());
    run.exits(3);
    assert_eq!(world.line("parser")["reason"], "terminated by tester: it runs in circles");
    world.longhaul.call(&["kill", &id]).exits(2).says("is over");

    world.longhaul.call(&["feature", "unblock", "parser", "--dir", &world.root]).exits(0);
    let mut run = world.begin("second");
    until("it is tried again", || world.line("parser")["step"] == "session 1");
    world.longhaul.call(&["terminate", &world.root, "--why", "enough"]).exits(0).says("terminated");
    run.exits(3);
    until("its agent is gone", || world.longhaul.left_over().is_empty());
    let third = world.begin("third");
    until("it is tried again", || world.line("parser")["step"] == "session 1");
    third.terminate();
}

/// An agent that goes on after a request to end, until the agents of all three features have one.
const STUBBORN: &str = r#"
place=$LONGHAUL_TEST_JOURNAL/..
trap ': >"$place/term-$id"' TERM
: >"$place/ready-$id"
until [ -e "$place/term-parser" ] && [ -e "$place/term-shell" ] && [ -e "$place/term-table" ]; do
    sleep 0.05 || :
done
: >"$place/together-$id"
exit 0
"#;

#[test]
fn the_agents_of_a_terminated_project_end_at_the_same_time() {
    const FEATURES: [&str; 3] = ["parser", "shell", "table"];
    let world = World::new(&FEATURES.map(|id| plain(id, &[], 1)), 0.0, "[project]\nparallel = 3\n");
    for feature in FEATURES {
        world.project.write(&format!("plan/{feature}"), STUBBORN);
    }
    world.project.commit("Be stubborn");
    let mut run = world.begin("run");
    let all = |what: &str| {
        let there = |id: &str| world.project.place().join(format!("{what}-{id}")).exists();
        FEATURES.into_iter().all(there)
    };
    until("all are at work", || all("ready"));
    world.longhaul.call(&["terminate", &world.root, "--why", "enough"]).exits(0);
    assert!(all("together"));
    run.exits(3);
    for feature in FEATURES {
        let line = world.line(feature);
        assert_eq!(line["status"], "cancelled", "{line}");
        assert_eq!(line["reason"], "terminated by tester: enough");
        assert_eq!((&line["sessions"], &line["step"]), (&json!(1), &Value::Null));
    }
}

#[test]
fn a_terminated_feature_is_continued_by_the_command_that_is_advised() {
    let world = World::new(&[plain("parser", &[], 3), plain("table", &[], 1)], 0.0, "");
    world.project.hold("parser");
    let mut run = world.begin("first");
    world.project.until_at_work("parser");
    let output = world.tell(&["terminate", "parser"]);
    let id = world.line("parser")["run"].as_str().unwrap_or_default().to_owned();
    output.exits(0).says(&format!("`longhaul resume {id}` continues it"));
    run.exits(3);
    world.project.let_go("parser");
    world.run().exits(3);
    assert!(!world.project.landed("main").contains(&"parser".into()), "a person has to resume it");
    world.longhaul.call(&["resume", &id]).exits(0);
    world.run().exits(0);
    assert!(world.project.landed("main").contains(&"parser".into()));
}

#[test]
fn blocked_features_beside_a_cancelled_one_are_a_finding() {
    let never = Plan { id: "parser", needs: &[], steps: 1, habit: Habit::Never };
    let settings = "[project]\nparallel = 2\n[limits]\nfailed_gates = 1\n";
    let world = World::new(&[never, plain("table", &[], 1)], 0.0, settings);
    world.project.hold("table");
    let mut run = world.begin("first");
    world.project.until_at_work("table");
    until("the parser is blocked", || world.line("parser")["status"] == "blocked");
    world.tell(&["cancel", "table"]).exits(0);
    run.exits(1);
    let one = world.longhaul.call(&["agent", "run", &world.root, "--feature", "table"]);
    one.exits(3);
}

#[test]
fn a_resumed_feature_waits_for_approval_again() {
    // Resumed at rest after a pause, and while it is not paused.
    for pauses in [true, false] {
        let world = World::new(&[plain("parser", &[], 1)], 0.0, "[merge]\napproval = true\n");
        world.run().exits(3);
        if pauses {
            world.tell(&["pause", &world.root]).exits(0);
            world.run().exits(3);
            assert_eq!(world.line("parser")["status"], "paused");
        }
        world.longhaul.call(&["resume", &world.root]).exits(0);
        world.begin("resumed").exits(3);
        let status = world.longhaul.status(Path::new(&world.root));
        assert_eq!(status["status"], "needs_attention", "{status:#}");
        let line = world.line("parser");
        assert_eq!((&line["status"], &line["is_open"]), (&"waiting".into(), &true.into()));
        world.longhaul.call(&["replay", "--all"]).exits(0);
        world.tell(&["approve", "parser"]).exits(0);
        world.run().exits(0);
        assert_eq!(world.project.landed("main"), ["parser"]);
    }
}

#[test]
fn a_blocked_feature_names_the_reason_of_the_person_who_blocked_it() {
    let world = World::new(&[plain("parser", &[], 1)], 0.0, "");
    world.project.hold("parser");
    let mut run = world.begin("first");
    world.project.until_at_work("parser");
    world.tell(&["cancel", "parser"]).exits(0);
    run.exits(3);
    let why = world.tell(&["why", "parser"]);
    why.exits(0).says("It was cancelled by tester").says("longhaul resume");
    world.tell(&["feature", "block", "parser", "--why", "too early"]).exits(0);
    world.run().exits(1);
    let why = world.tell(&["why", "parser"]);
    why.exits(0).says("It is blocked: too early.").says("longhaul feature unblock parser");
    assert!(!why.stdout.contains("cancelled"), "{}", why.stdout);
    world.tell(&["feature", "unblock", "parser"]).exits(0);
    world.project.let_go("parser");
    world.run().exits(0);
}

#[test]
fn a_run_at_rest_is_terminated_when_its_project_runs_again() {
    let world = World::new(&[plain("parser", &[], 1)], 0.0, "[merge]\napproval = true\n");
    world.run().exits(3);
    world.tell(&["terminate", "parser"]).exits(0).says("when its project runs next");
    world.run().exits(3);
    assert_eq!(world.line("parser")["reason"], "terminated by tester");
    // Its advice is followed.
    let advised = world.tell(&["why", "parser"]).exits(0).stdout.clone();
    assert!(advised.contains("longhaul resume"), "{advised}");
}

#[test]
fn many_are_steered_at_once_by_a_filter_or_by_ids_in_a_pipe() {
    let plans = [plain("parser", &[], 1), plain("table", &[], 1), plain("shell", &[], 1)];
    let world = World::new(&plans, 0.0, "[merge]\napproval = true\n");
    world.run().exits(3);
    let status = world.longhaul.status(Path::new(&world.root));
    let project = status["project"].as_str().unwrap_or_default();
    let run = |feature: &str| format!("{project}/{feature}/1");
    let by_project = format!("project={project}");

    let output = world.tell(&["approve", "--filter", &by_project, "--dry-run", "-o", "json"]);
    assert_eq!(output.exits(0).json()["dry_run"], true);
    assert_eq!(delivered(&output), (vec![run("parser"), run("shell"), run("table")], vec![]));
    let output = world.tell(&["pause", "--filter", &by_project, "--dry-run"]);
    output.exits(0).says("would be paused");
    world.tell(&["approve", "--filter", &by_project]).exits(2).says("--yes");
    world.tell(&["approve", "--filter", "feature=nothing"]).exits(0).says("no run matches");
    world.tell(&["approve", "--filter", "colour=red"]).exits(2).says("label.NAME");
    let output = world.tell(&["approve", "--filter", &by_project, "--limit", "1", "-o", "json"]);
    assert_eq!(delivered(output.exits(0)), (vec![run("parser")], vec![]));

    let ids = world.project.place().join("ids");
    std::fs::write(&ids, format!("{}\tthe shell\n{}\nnobody/1\n", run("shell"), run("table")))
        .unwrap();
    let approve = ["approve", "-", "--yes", "-o", "json"];
    let output = world.longhaul.feed(&approve, &ids);
    assert_eq!(
        delivered(output.exits(5)),
        (vec![run("shell"), run("table")], vec!["nobody/1".into()])
    );
    assert_eq!(output.json()["runs"][2]["result"], json!("unknown"));
    world.run().exits(0);
    assert_eq!(world.project.landed("main").len(), 3);
}

#[test]
fn a_project_that_was_terminated_is_begun_again_without_losing_what_passed() {
    for at_rest in [false, true] {
        let world = World::new(&[plain("parser", &[], 1), plain("table", &["parser"], 2)], 0.0, "");
        world.project.hold("table");
        let mut run = world.begin("first");
        world.project.until_at_work("table");
        if at_rest {
            run.terminate();
            run.exits(3);
        }
        let terminate = ["terminate", &world.root, "--why", "it is wrong", "--by", "ann"];
        world.longhaul.call(&terminate).exits(0);
        if !at_rest {
            run.exits(3);
            let status = world.longhaul.call(&["status", &world.root]);
            status.exits(0).says("cancelled").says("terminated by ann: it is wrong");
            let id = world.longhaul.status(Path::new(&world.root))["project"]
                .as_str()
                .unwrap_or_default()
                .to_owned();
            world
                .longhaul
                .call(&["why", &id])
                .exits(0)
                .says("It was terminated by ann: it is wrong.");
        }
        until("its agent is gone", || world.longhaul.left_over().is_empty());
        world.project.let_go("table");
        world.run().exits(0).says("2 of 2 features pass");
        assert_eq!(world.line("parser")["sessions"], 1, "what passed is not done again");
        assert_eq!(world.project.landed("main"), ["table", "parser"]);
    }
}
