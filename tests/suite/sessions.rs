//! The commands that look at sessions, and the ledger of their tokens.

use longhaul_model_server::{Answer, Hold, Options, Outcome, Part, Reply, Request};
use longhaul_tests::project::{Plan, plain};
use longhaul_tests::wait::until;
use serde_json::{Value, json};

use crate::hosted::{self, Hosted};
use crate::world::World;

const PARSER: [Plan; 1] = [plain("parser", &[], 1)];

/// The output of a command is as recorded, except for numbers of tokens, which change with each
/// text for the model.
#[track_caller]
fn check(world: &World, name: &str, command: &str) {
    let text = world.plain(command);
    let mut plain = String::new();
    let mut number = String::new();
    for letter in text.chars().chain(['\n']) {
        if letter.is_ascii_digit() {
            number.push(letter);
            continue;
        }
        plain += if number.len() > 1 { "<n>" } else { &number };
        number.clear();
        plain.push(letter);
    }
    world.recorded(
        &format!("look/{name}"),
        &format!("$ longhaul {command}\n{}\n", plain.trim_end()),
    );
}

#[test]
fn sessions_of_the_built_in_agent_are_shown() {
    let hosted = Hosted::new(&PARSER, "", Options::default(), hosted::works);
    let world = &hosted.world;
    world.call("session list").exits(0).says("no session yet").says("nothing has run yet");
    world.run().exits(0);
    check(world, "sessions", "session list .");
    check(world, "sessions-json", "session list parser -o json");
    check(world, "sessions-jsonl", "session list -o jsonl");
    check(world, "session", "session show parser");
    check(world, "session-json", "session show parser/1/1 -o json");
    check(world, "transcript", "session transcript parser");
    check(world, "transcript-json", "session transcript <project>/parser/1/1 -o json");
    check(world, "transcript-jsonl", "session transcript parser -o jsonl");
    check(world, "usage", "usage");
    check(world, "usage-json", "usage parser --by project -o json");
    check(world, "usage-csv", "usage . --by model -o csv");

    check(world, "logs-session", "logs parser");
    world.call(&format!("logs {}/parser/1/1", hosted.id())).exits(0).says("> finish");
    let ids = world.call("session list -o ids").exits(0).stdout.clone();
    assert_eq!(ids.trim(), format!("{}/parser/1/1", hosted.id()));
    world.call("session handoff parser").exits(2).says("neither written nor received a package");
    world.call("session show .").exits(2);
    world.call("session show <project>").exits(2).says("`longhaul session list");
    world.call("session show parser/1/7").exits(2);
    world.narrow("session list").exits(0);
    let shown = world.json("session show parser");
    assert_eq!(shown["completed_steps"].as_array().map(Vec::len), Some(6), "{shown:#}");
    assert_eq!((&shown["turns"], &shown["tool_calls"]), (&json!(4), &json!(4)));
    assert_eq!(shown["context_summary"], "## Completed\n\n- It is written.");
}

#[test]
fn a_handoff_is_shown_by_both_sessions() {
    let options = Options { window: Some(8000), ..Options::default() };
    let hosted = Hosted::new(&PARSER, hosted::SMALL, options, hosted::works_long);
    let world = &hosted.world;
    world.run().exits(0);
    let first = world.json("session handoff parser/1/1");
    let package = &first["package"];
    let second = format!("{}/parser/1/2", hosted.id());
    assert_eq!(package["newSessionId"], second);
    assert_eq!(package["projectState"]["objective"], "Count to two hundred.");
    let text = world.call("session handoff parser/1/1");
    text.exits(0).says("# Handoff of parser").says("## Next steps").says("- Go on counting.");
    check(world, "handoff", "session handoff parser/1/1");
    check(world, "handoff-json", "session handoff parser/1/1 -o json");
    let last = world.json("session list parser")["sessions"].as_array().map(Vec::len).unwrap();
    let received = world.json(&format!("session handoff parser/1/{last}"));
    let predecessor = format!("{}/parser/1/{}", hosted.id(), last - 1);
    assert_eq!(received["package"]["previousSessionId"], predecessor);
    let shown = world.json(&format!("session show parser/1/{last}"));
    assert_eq!(shown["predecessor"], predecessor);
    let shown = world.json("session show parser/1/1");
    assert_eq!((&shown["successor"], &shown["state"]), (&second.into(), &"context_full".into()));
    assert!(shown["checkpoints"].as_array().unwrap().len() >= 2, "{shown:#}");

    let transcript = world.call("session transcript parser/1/1").exits(0).stdout.clone();
    assert_eq!(transcript.matches("restarts").count(), 1, "one compaction:\n{transcript}");
    assert_eq!(
        transcript.matches("You are working on one feature").count(),
        1,
        "one prompt:\n{transcript}"
    );
    let steps = |number: u32| transcript.matches(&format!("step {number} of 200")).count();
    assert_eq!((1..5).map(steps).collect::<Vec<_>>(), [1, 1, 1, 1], "{transcript}");
    each_token_is_counted_once(&hosted, last);
    files_have_the_records(&hosted, last);
}

/// The files for people say the same as `session show`.
fn files_have_the_records(hosted: &Hosted, sessions: usize) {
    for number in [1, sessions] {
        let file = format!(".longhaul/sessions/session-{number:03}.json");
        let record: Value = serde_json::from_str(&hosted.world.project.read(&file)).unwrap();
        let shown = hosted.world.json(&format!("session show parser/1/{number}"));
        let commits = |document: &Value| -> Vec<Value> {
            let checkpoints = document["checkpoints"].as_array().unwrap().iter();
            checkpoints.map(|checkpoint| checkpoint["commit"].clone()).collect()
        };
        assert_eq!(commits(&record), commits(&shown), "{record:#}\n{shown:#}");
        assert_eq!(record["status"], "completed", "{record:#}");
        assert_eq!(record["completed_steps"], shown["completed_steps"]);
        assert_eq!(record["current_step"], Value::Null);
        let summary = record["context_summary"].as_str().unwrap();
        assert!(summary.contains("Count to two hundred."), "{summary}");
        let triggers: Vec<_> = record["checkpoints"].as_array().unwrap().iter().collect();
        if number == 1 {
            let has = |name: &str| triggers.iter().any(|one| one["trigger"] == name);
            assert!(has("pre-overflow") && has("handoff"), "{record:#}");
        }
    }
}

/// The ledger has what the sessions have counted themselves, also those with summaries.
fn each_token_is_counted_once(hosted: &Hosted, sessions: usize) {
    let world = &hosted.world;
    let list = world.json("session list parser");
    let lines = list["sessions"].as_array().unwrap();
    assert_eq!(lines.len(), sessions);
    let sum = |field: &str| lines.iter().map(|line| number(&line["tokens"][field])).sum::<u64>();
    let turns: u64 = lines.iter().map(|line| number(&line["turns"])).sum();
    for by in ["feature", "project", "model", "day"] {
        let ledger = world.json(&format!("usage parser --by {by}"));
        let total = &ledger["total"];
        for field in ["input", "output", "cache_read", "cache_write"] {
            assert_eq!(number(&total["tokens"][field]), sum(field), "{by} {field}: {ledger:#}");
        }
        assert_eq!(number(&total["turns"]), turns, "{by}");
        assert_eq!(total["cost_usd"], Value::Null);
    }
    let prices = world.project.home().join("prices.toml");
    std::fs::write(&prices, "[models.\"script*\"]\ninput = 3\noutput = 15\ncache_read = 0.3\n")
        .unwrap();
    let total = &world.json("usage")["total"];
    let tokens = |field: &str| total["tokens"][field].as_f64().unwrap_or_default();
    let expected = tokens("input") * 3.0
        + tokens("output") * 15.0
        + tokens("cache_read") * 0.3
        + tokens("cache_write") * 3.0;
    assert!((total["cost_usd"].as_f64().unwrap() - expected / 1e6).abs() < 1e-9, "{total:#}");
    assert_eq!(total["unpriced_tokens"], 0);
    std::fs::write(&prices, "[models.x]\ninput = \"much\"\n").unwrap();
    world.call("usage").exits(2).says("prices.toml is wrong");
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is a number"))
}

/// The main agent delegates its work; the sub-agent writes the file.
fn delegates(request: &Request) -> Reply {
    let is_sub_agent = request.parts().any(|part| match part {
        Part::Text(text) => text.contains("Write the file."),
        _ => false,
    });
    match (is_sub_agent, hosted::results(request)) {
        (false, 0) => Answer::call("delegate", &json!({ "task": "Write the file." })).into(),
        (true, 0) => {
            Answer::call("write", &json!({ "path": "parser.txt", "content": "finished\n" })).into()
        }
        _ => Answer::call("finish", &json!({ "summary": "It is written." })).into(),
    }
}

#[test]
fn a_sub_agent_is_a_session_and_is_paid_once() {
    let hosted = Hosted::new(&PARSER, "", Options::default(), delegates);
    let world = &hosted.world;
    world.run().exits(0);
    let ids = world.call("session list parser -o ids").exits(0).stdout.clone();
    let main = format!("{}/parser/1/1", hosted.id());
    assert_eq!(ids, format!("{main}\n{main}/1\n"));
    let shown = world.json(&format!("session show {main}/1"));
    assert_eq!(shown["task"], "Write the file.");
    world.call(&format!("session transcript {main}")).exits(0).says("* sub-agent");
    let total = world.json("usage parser")["total"].clone();
    let of_main = &world.json(&format!("session show {main}"))["tokens"];
    assert_eq!((&total["tokens"], &total["turns"]), (of_main, &json!(4)));
    let of_sub_agent = world.json(&format!("usage {main}/1"));
    assert_eq!(of_sub_agent["total"]["turns"], 2);
}

#[test]
fn sessions_of_a_command_are_shown_too() {
    let world = World::new(&PARSER, 0.0);
    world.run().exits(0);
    check(&world, "session-command", "session show parser/1/1");
    let lines = world.json("session list parser");
    assert_eq!(lines["sessions"][0]["driver"], "command");
    world.call("session transcript parser").exits(0).says("step 1 of 1");
    let session = lines["sessions"][0]["id"].as_str().unwrap();
    world.call(&format!("logs {session}")).exits(0).says("step 1 of 1");
    world.call(&format!("history {session}")).exits(0).says("session 1 (start) begins");
    world.call(&format!("describe {session}")).exits(0).says("run_session");
    world.call(&format!("replay {session}")).exits(0).says("1 same");
    world.call("session handoff parser").exits(2).says("neither written nor received");
    world.call("usage").exits(0).says("no agent has stated any tokens");
}

/// Asks a person, and writes the answer into the file.
fn asks(request: &Request) -> Reply {
    let file = format!("{}.txt", hosted::feature(request));
    let answer = request.parts().find_map(|part| match part {
        Part::Result(text) => Some(text.clone()),
        _ => None,
    });
    match (hosted::results(request), answer) {
        (1, Some(answer)) => {
            let content = format!("{answer}\nfinished\n");
            Answer::call("write", &json!({ "path": file, "content": content })).into()
        }
        (0, _) => Answer::call("ask", &json!({ "question": "Red or blue?" })).into(),
        _ => Answer::call("finish", &json!({ "summary": "It is written." })).into(),
    }
}

#[test]
fn a_question_waits_for_its_answer() {
    let hosted = Hosted::new(&PARSER, "", Options::default(), asks);
    let world = &hosted.world;
    world.call("run .").exits(3);
    world.check("why-question", "why parser");
    world.check("list-question", "list --kind session");
    let session = format!("{}/parser/1/1", hosted.id());
    let remedy = format!("`longhaul answer {session} TEXT`");
    world.call("status .").says("Red or blue?").says("longhaul answer");
    world.call("list").exits(0).says("Red or blue?");
    world.call("session show parser").exits(0).says("asking").says(&remedy);
    assert_eq!(world.json("why parser")["reasons"][0]["kind"], "question");
    world.call("describe parser").exits(0).says("Red or blue?");
    world.transcript("steer/answer", &["answer parser blue", "answer parser red"]);
    world.call("run .").exits(0);
    assert_eq!(world.project.git(&["show", "main:parser.txt"]), "blue\nfinished");
    world.call("answer parser blue").exits(2).says("asks nothing");
    world.call("replay --all").exits(0).says("0 diverged");
}

#[test]
fn logs_follow_a_conversation() {
    let options = Options::default();
    let hold = Hold::new();
    let held = hold.clone();
    let script = move |request: &Request| match hosted::results(request) {
        2 => Reply::Held(held.clone(), Box::new(hosted::works(request))),
        _ => hosted::works(request),
    };
    let hosted = Hosted::new(&PARSER, "", options, script);
    let world = &hosted.world;
    let mut run = world.begin();
    until("the model is asked", || hosted.server.count(Outcome::Answered) >= 2);
    let args = ["logs", "parser", "-f", "--dir", &world.root];
    let mut logs = world.longhaul.begin(&args, &world.project.place().join("logs"));
    until("the conversation is shown", || logs.output().contains("> write: "));
    assert!(!logs.output().contains("> shell: "), "{}", logs.output());
    hold.release();
    run.exits(0);
    logs.exits(0);
    let output = logs.output();
    assert_eq!(output.matches("> shell: ").count(), 1, "{output}");
    assert_eq!(output.matches("> write: ").count(), 1, "{output}");
    assert!(output.contains("> finish: "), "{output}");
}
