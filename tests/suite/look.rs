//! The commands that look: the same on a log in use and at rest, readable when it is narrow, and in
//! the shapes that their schemas promise.

use longhaul_tests::project::{Habit, Plan, plain};
use longhaul_tests::wait::until;

use crate::world::World;

const NEVER: Plan = Plan { id: "parser", needs: &[], steps: 1, habit: Habit::Never };
const REPAIRS: Plan = Plan { id: "manual", needs: &[], steps: 1, habit: Habit::Repairs };

#[test]
fn everything_is_shown_as_it_was() {
    let plans =
        [NEVER, plain("table", &["parser"], 1), REPAIRS, plain("shell", &["table", "manual"], 1)];
    let world = World::new(&plans, 0.0);
    world.check("graph-new", "graph .");
    world.run().exits(1);

    world.check("list", "list");
    world.check("list-jsonl", "list -o jsonl");
    world.check("list-json", "list --status blocked -o json");
    world.check("describe", "describe parser");
    world.check("describe-json", "describe manual -o json");
    world.check("history", "history manual");
    world.check("history-json", "history manual -o json");
    world.check("logs", "logs parser --session 1");
    world.call("history parser --full").exits(0).says("\"workflow\": \"feature\"");
    world.check("tree", "tree .");
    world.check("tree-json", "tree . -o json");
    world.check("graph", "graph .");
    world.check("graph-json", "graph . -o json");
    world.check("graph-dot", "graph . --as dot");
    world.check("graph-mermaid", "graph . --as mermaid");
    world.check("graph-svg", "graph . --as svg");
    world.check("why-blocked", "why parser");
    world.check("why-blocked-json", "why parser -o json");
    world.check("why-waiting", "why shell");
    world.check("why-done", "why manual");
    world.check("why-project", "why p-");
    names_are_found_or_suggested(&world);
    narrow_pages_stay_readable(&world);
    histories_are_those_of_a_file(&world);
}

fn names_are_found_or_suggested(world: &World) {
    let run = format!("{}/parser/1", world.project_id());
    for name in [run.as_str(), "parser", "parser/1", &run[..run.len() - 2], &format!("{run}/")] {
        assert_eq!(world.json(&format!("describe {name}"))["run"], run, "{name}");
    }
    assert_eq!(
        world.json(&format!("describe {}", &world.project_id()[..3]))["workflow"],
        "project"
    );
    world.call("describe pasrer").exits(2).says("did you mean").says("parser");
    world.call("history table").exits(2).says("/table` says why");
    world.call("why nothing-like-it").exits(2).says("`longhaul list`");
    world.call("describe 1").exits(2).says("several runs").says("manual/1");
    world.call("logs parser --session 9").exits(2).says("2 sessions");
    world.call("tree no-such-run").exits(2);
    world.call("list --status asleep").exits(2).says("blocked");
    world.call("list --after nonsense").exits(2).says("--after");
    world.call("list --since yesterday").exits(2).says("RFC 3339");
    world.call("schema nothing").exits(2).says("describe");
    assert_eq!(world.json("list --limit 1")["runs"].as_array().map(Vec::len), Some(1));
    assert_eq!(world.json("list --project . --kind project")["fitting"], 1);
    assert_eq!(world.json("list --since 1d --feature manual")["fitting"], 3);
    assert_eq!(world.json("list --until 1d")["fitting"], 0);
    assert_eq!(world.json("list --label a=b")["fitting"], 0);
    let ids = world.call("list --kind feature -o ids").exits(0).stdout.clone();
    assert_eq!(ids, format!("{0}/manual/1\n{0}/parser/1\n", world.project_id()));
    assert_eq!(world.call("list -o jsonl").exits(0).stdout.lines().count(), 7);
    let next = world.json("list --limit 1")["next"].as_str().map(str::to_owned).unwrap_or_default();
    assert_eq!(world.json(&format!("list --after {next}"))["fitting"], 6);
}

fn narrow_pages_stay_readable(world: &World) {
    for command in [
        "list",
        "graph .",
        "tree .",
        "describe manual",
        "why shell",
        "why parser",
        "history parser",
    ] {
        world.narrow(command).exits(0);
    }
}

/// What `history -o jsonl` gives are lines of a history file.
fn histories_are_those_of_a_file(world: &World) {
    let output = world.call("history manual -o jsonl");
    let lines: Vec<&str> = output.exits(0).stdout.lines().collect();
    let run = format!("{}/manual/1", world.project_id());
    let header =
        format!(r#"{{"schema":"longhaul.history/1","run":"{run}","events":{}}}"#, lines.len());
    let text = format!("{header}\n{}", output.stdout);
    let footer = format!(r#"{{"end":true,"blake3":"{}"}}"#, hash(&text));
    let (read, events) = longhaul_storage::history_file::read(&(text + &footer)).unwrap();
    assert_eq!((read.as_str(), events.len()), (run.as_str(), lines.len()));
}

fn hash(text: &str) -> String {
    let computed =
        longhaul_storage::history_file::read(&format!("{text}{{\"end\":true,\"blake3\":\"\"}}"));
    match computed {
        Err(longhaul_storage::FileError::Checksum { computed, .. }) => computed,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_log_in_use_and_one_at_rest_look_the_same() {
    let world = World::new(&[NEVER, plain("table", &["parser"], 1), plain("manual", &[], 2)], 0.0);
    world.project.hold("manual");
    let mut run = world.begin();
    world.project.until_at_work("manual");
    let commands = [
        "list",
        "tree .",
        "describe parser",
        "describe manual",
        "history parser",
        "history manual",
        "history manual -o jsonl",
        "why parser",
        "why table",
        "logs parser",
    ];
    let in_use = commands.map(|command| world.plain(command));
    world.call("why manual").exits(0).says("It is working: session 1, since");
    assert_eq!(world.json("list")["is_running"], true);
    let mut follow = world.longhaul.begin(
        &["history", "manual", "-f", "--dir", &world.root],
        &world.project.place().join("followed"),
    );
    let mut logs = world.longhaul.begin(
        &["logs", "manual", "-f", "--dir", &world.root],
        &world.project.place().join("logs"),
    );
    until("the agent is heard", || logs.output().contains("step 1 of 2"));

    run.terminate();
    run.exits(3);
    follow.exits(3);
    logs.exits(3);
    assert!(follow.output().contains("session 1 (start) begins"), "{}", follow.output());
    assert!(follow.output().contains("no process runs it"), "{}", follow.output());
    let at_rest = commands.map(|command| world.plain(command));
    for ((command, in_use), at_rest) in commands.iter().zip(&in_use).zip(&at_rest) {
        // A process works on the project, or none does.
        let at_rest = at_rest
            .replace(": no process runs it", "")
            .replace("  no process runs it", "")
            .replace("waiting", "running");
        let in_use = in_use.replace("waiting", "running");
        assert_eq!(in_use, at_rest, "{command}");
    }
    world.call("why manual").exits(0).says("It was at: session 1, since");
    world.call("list").exits(0).says("no process runs this log now");
    assert_eq!(world.json("list")["is_running"], false);
}

#[test]
fn what_is_followed_ends_with_its_run() {
    let world =
        World::new(&[Plan { id: "parser", needs: &[], steps: 6, habit: Habit::Fills }], 0.0);
    world.project.hold("parser");
    let mut run = world.begin();
    world.project.until_at_work("parser");
    let follow = |command: &str| {
        let args = [command, "parser", "--follow", "--dir", &world.root];
        world.longhaul.begin(&args, &world.project.place().join(command))
    };
    let (mut history, mut logs) = (follow("history"), follow("logs"));
    until("both follow", || {
        history.output().contains("session 1") && logs.output().contains("step 1")
    });
    world.project.let_go("parser");
    run.exits(0);
    // Who runs the log may be gone before the end is asked for; then it is read from the log at
    // rest.
    history.exits(0);
    logs.exits(0);
    let output = history.output();
    let first = |line: &'_ str| line.trim_start().split(' ').next().map(str::to_owned);
    let is_number = |word: &String| word.bytes().all(|letter| letter.is_ascii_digit());
    let positions = output.lines().filter_map(first).filter(is_number);
    let positions: Vec<u64> = positions.map(|number| number.parse().unwrap()).collect();
    assert!(positions.len() > 30 && positions.is_sorted_by(|one, next| one < next), "{output}");
    assert!(output.contains("over: passed"), "{output}");
    // The first session ends after one step; whichever was there first, what follows is shown once.
    let output = logs.output();
    let count = |step| output.matches(&format!("step {step} of 6")).count();
    assert!((1..6).all(|step| count(step) <= 1) && count(6) == 1, "{output}");
}

#[test]
fn what_has_never_run_says_so() {
    let world = World::new(&[plain("table", &["parser"], 1), plain("parser", &[], 1)], 0.0);
    world.call("list").exits(0).says("no run fits");
    assert_eq!(world.json("list")["runs"], serde_json::json!([]));
    world.call("tree .").exits(2).says("has ever run");
    world.call("describe parser").exits(2).says("nothing has run yet");
    world.call("why parser").exits(0).says("never run");
    world.call("why nothing").exits(2);
    let elsewhere = World::new(&[], 0.0);
    elsewhere.call("why parser").exits(2);
    assert!(
        !elsewhere.project.git(&["config", "--list"]).contains("longhaul.id"),
        "looking leaves no trace"
    );
    world.call("graph .").exits(0).says("○ parser");
}

#[test]
fn people_who_paused_are_named() {
    let world = World::new(&[plain("parser", &[], 1), plain("table", &[], 1)], 0.0);
    world.project.hold("parser");
    let mut run = world.begin();
    world.project.until_at_work("parser");
    world.call("why table").exits(0).says("The project works on 1 at once").says("parser");
    world.call("pause . --reason lunch").exits(0);
    world.call("why table").exits(0).says("The project was paused by tester: lunch");
    world.call("why parser").exits(0).says("It was paused by tester: lunch");
    world.call("describe parser").exits(0).says("pause");
    world.call("cancel . --reason dear").exits(0);
    run.exits(3);
    world.call("why table").exits(0).says("The project was cancelled by tester: dear");
}

#[test]
fn why_reads_the_list_as_it_is_now() {
    let never = Plan { id: "parser", needs: &[], steps: 1, habit: Habit::Never };
    let world = World::new(&[never, plain("shell", &["parser"], 1), plain("table", &[], 1)], 0.0);
    world.run().exits(1);
    world.call("why shell").says("It needs parser, which is blocked");
    let list = world.project.read("feature_list.json");
    let free = list.replacen("\"parser\"\n      ]", "\"table\"\n      ]", 1);
    assert_ne!(free, list, "{list}");
    world.project.write("feature_list.json", &free);
    world.call("why shell").says("Nothing blocks shell");
    world.call("feature unblock parser").exits(0);
    world.call("why parser").says("It was given up").says("Pending: unblock");
}
