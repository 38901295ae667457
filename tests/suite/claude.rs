//! Sessions of the driver `claude`, with a scripted agent: `tests/src/bin/claude-agent.rs`.

use std::fs;

use longhaul_tests::wait::until;
use serde_json::json;

use crate::played::Played;

const AGENT: &str = env!("CARGO_BIN_EXE_claude-agent");

fn play(scenario: &str, settings: &str) -> Played {
    let settings = format!("env = {{ ANTHROPIC_API_KEY = \"dummy\" }}\n{settings}");
    Played::new("claude", AGENT, scenario, &settings)
}

/// The kinds of lines that the agent got.
fn kinds(played: &Played) -> Vec<String> {
    let requests = played.requests();
    let kind = |line: &serde_json::Value| {
        let subtype = line["request"]["subtype"].as_str().or(line["type"].as_str());
        subtype.unwrap_or_default().to_owned()
    };
    requests.iter().map(kind).collect()
}

#[test]
fn an_agent_completes_a_feature_and_its_history_tells_how() {
    let played = play("done", "");
    played.passes();
    let kinds = kinds(&played);
    assert_eq!(kinds, ["initialize", "get_context_usage", "user", "control_response"]);
    let prompt = played.requests()[2]["message"]["content"][0]["text"].clone();
    assert!(prompt.as_str().unwrap().contains("one feature of this project"), "{prompt}");
    let session = played.world.json("session show parser");
    let facts = ["driver", "model", "conversation", "tool_calls"].map(|name| &session[name]);
    assert_eq!(facts, [&json!("claude"), &json!("claude-x"), &json!("c1"), &json!(1)]);
    // 400 tokens of input and 3 of output, in a window of 1000.
    assert_eq!(session["window_share"], json!(0.403), "{session:#}");
}

#[test]
fn an_older_version_gets_no_window_request() {
    let played = play("older", "");
    played.passes();
    assert_eq!(kinds(&played), ["initialize", "user", "control_response"]);
}

#[test]
fn a_nearly_full_window_ends_the_turn_after_its_tools_and_a_fresh_session_continues() {
    let played = play("full", "");
    played.passes();
    assert_eq!(played.states(), ["context_full", "claims_done"]);
    let logs = played.world.call("logs <project>/parser/1/1");
    logs.exits(0).says("! the turn ended, stopped at boundary");
}

#[test]
fn a_spent_budget_ends_the_turn_after_its_tools() {
    let played = play("endless", "[budget]\ntokens = 50\n[project]\nparallel = 1\n");
    let run = played.world.run();
    run.exits(3).says("the budget of the project, 50 tokens, is spent");
    assert_eq!(kinds(&played).iter().filter(|kind| *kind == "control_response").count(), 3);
    played.is_whole();
}

#[test]
fn a_cancelled_session_ends_its_turn_first_and_counts_towards_the_budget() {
    let played = play("hangs", "[budget]\ntokens = 20\n");
    let mut run = played.world.begin();
    until("the agent works", || played.is_at_work());
    until("its answer is recorded", || {
        played.world.json("session show parser")["tokens"]["output"] == 1
    });
    played.world.call("cancel parser --yes").exits(0);
    run.exits(3);
    let output = run.output();
    assert!(output.contains("the budget of the project, 20 tokens, is spent"), "{output}");
    assert_eq!(kinds(&played).last().unwrap(), "interrupt");
    let total = played.world.json("usage")["total"].clone();
    assert_eq!((&total["turns"], &total["tokens"]["input"]), (&json!(1), &json!(20)));
    let ledger = played.world.json("usage --by model");
    assert_eq!(ledger["rows"][0]["name"], "claude-x", "{ledger:#}");
    played.world.call("history <project>/parser/1/1").exits(0).says("read use");
    played.is_whole();
}

#[test]
fn the_transcript_is_printed_while_the_agent_works() {
    let played = play("done", "");
    fs::write(played.file("held"), "").unwrap();
    let mut run = played.world.begin();
    until("the agent works", || played.is_at_work());
    let args = ["logs", "parser", "-f", "--dir", &played.world.root];
    let mut logs = played.world.longhaul.begin(&args, &played.file("logs"));
    until("its tool call is printed", || logs.output().contains("> Bash: echo finished"));
    assert!(logs.output().contains("I begin."), "{}", logs.output());
    fs::remove_file(played.file("held")).unwrap();
    run.exits(0);
    logs.exits(0);
    assert!(logs.output().contains("It is written."), "{}", logs.output());
}
