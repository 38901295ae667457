//! Sessions of the driver `acp`, with a scripted agent: `tests/src/bin/acp-agent.rs`.

mod limits;

use std::fs;

use longhaul_tests::wait::until;
use serde_json::{Value, json};

use crate::played::{PLANS, Played};
use crate::world::World;

const AGENT: &str = env!("CARGO_BIN_EXE_acp-agent");

fn play(scenario: &str, settings: &str) -> Played {
    Played::new("acp", AGENT, scenario, settings)
}

/// The requests that the agent got, but for those of the check at the start of a run.
fn requests(played: &Played) -> Vec<Value> {
    let requests = played.requests();
    let is_check = |(number, request): &(usize, &Value)| {
        let next = requests.get(number + 1);
        request["method"] == "initialize" && next.is_none_or(|next| next["method"] == "initialize")
    };
    let checks: Vec<usize> = requests.iter().enumerate().filter(is_check).map(|it| it.0).collect();
    let kept = requests.iter().enumerate().filter(|(number, _)| !checks.contains(number));
    kept.map(|(_, request)| request.clone()).collect()
}

fn methods(played: &Played) -> Vec<String> {
    let requests = requests(played);
    let methods = requests.iter().filter_map(|request| request["method"].as_str());
    methods.map(str::to_owned).collect()
}

#[test]
fn an_agent_completes_a_feature_and_its_history_tells_how() {
    let played = play("done", "model = \"large\"\n");
    played.world.call("doctor .").exits(0).says("is there, version 0.3");
    played.passes();
    let session = played.world.json("session show parser");
    let tokens = json!({ "input": 30, "output": 7, "cache_read": 5, "cache_write": 0 });
    assert_eq!(session["tokens"], tokens, "{session:#}");
    let facts = ["driver", "model", "conversation", "tool_calls", "granted", "window_share"];
    let facts = facts.map(|name| session[name].clone());
    let expected =
        [json!("acp"), json!("large"), json!("scripted-1"), json!(1), json!(1), json!(0.4)];
    assert_eq!(facts, expected, "{session:#}");
    let ledger = played.world.json("usage --by model");
    assert_eq!(ledger["total"]["cost_usd"], json!(0.75), "{ledger:#}");
    let logs = played.world.call("logs parser");
    logs.exits(0).says("> execute: echo finished").says("It is written.").says("a line of a log");
    let requests = requests(&played);
    assert_eq!(
        methods(&played),
        ["initialize", "session/new", "session/set_config_option", "session/prompt"]
    );
    assert_eq!(requests[2]["params"]["value"], "large");
    let answer = json!({ "outcome": { "outcome": "selected", "optionId": "yes" } });
    assert_eq!(requests[4]["result"], answer);
}

#[test]
fn a_refused_permission_is_recorded_and_is_no_work() {
    let played = play("refused", "");
    played.fails("1 tool call was refused (fetch), and no file was changed");
    let session = played.world.json("session show parser");
    assert_eq!(session["refused"], json!(["fetch"]), "{session:#}");
    let last = requests(&played).pop().unwrap();
    assert_eq!(last.pointer("/result/outcome/optionId"), Some(&json!("no")));
}

#[test]
fn the_settings_choose_the_permissions() {
    let played = play("done", "[agent.acp]\nallow = [\"read\"]\n");
    played.fails("1 tool call was refused (execute)");
    let wrong = play("done", "[agent.acp]\nallow = [\"exceute\"]\n");
    wrong.world.run().exits(2).says("exceute");
}

/// Kills Longhaul while a tool works, and runs again.
fn cut(scenario: &str) -> Played {
    let played = play(scenario, "");
    fs::write(played.file("held"), "").unwrap();
    let mut run = played.world.begin();
    until("the agent works", || played.is_at_work());
    assert!(run.kill(), "{}", run.output());
    until("all processes have ended", || played.world.longhaul.left_over().is_empty());
    fs::remove_file(played.file("held")).unwrap();
    played.passes();
    played
}

#[test]
fn a_cut_session_is_loaded_and_goes_on() {
    let played = cut("done");
    let loaded = ["initialize", "session/load", "session/prompt"];
    assert_eq!(methods(&played)[3..], loaded);
    let prompt = requests(&played).into_iter().rfind(|it| it["method"] == "session/prompt");
    let text = prompt.unwrap()["params"].to_string();
    assert!(text.contains("# Session resumed"), "{text}");
    // The messages and the cost of the first process come again, and do not count again.
    let session = played.world.json("session show parser");
    assert_eq!(session["tool_calls"], json!(2), "{session:#}");
    let ledger = played.world.json("usage --by model");
    assert_eq!(ledger["total"]["cost_usd"], json!(0.25), "{ledger:#}");
    assert_eq!(played.world.json("session list parser")["sessions"].as_array().unwrap().len(), 1);
}

#[test]
fn an_agent_that_can_resume_without_repeating_is_resumed_so() {
    assert_eq!(methods(&cut("resumes"))[3..], ["initialize", "session/resume", "session/prompt"]);
}

#[test]
fn an_agent_that_forgets_begins_a_new_conversation() {
    let played = cut("forgets");
    let anew = ["initialize", "session/new", "session/prompt"];
    assert_eq!(methods(&played)[3..], anew);
    let prompt = requests(&played).into_iter().rfind(|it| it["method"] == "session/prompt");
    assert!(prompt.unwrap()["params"].to_string().contains("one feature of this project"));
}

#[test]
fn a_limited_rate_waits_until_the_stated_time_and_the_conversation_goes_on() {
    let played = play("limited", "");
    fs::write(played.file("limited"), "").unwrap();
    let output = played.world.call("run --once -o json .");
    let due = output.exits(3).json()["next_due"].clone();
    let due = chrono::DateTime::parse_from_rfc3339(due.as_str().unwrap()).unwrap();
    let minutes = (due.to_utc() - chrono::Utc::now()).num_minutes();
    assert!((55..=60).contains(&minutes), "{minutes}");
    played.world.call("why parser").exits(0).says("limits the rate of requests");
    played.is_whole();
}

#[test]
fn a_nearly_full_window_stops_the_turn_and_a_fresh_session_continues() {
    let played = play("full", "");
    played.passes();
    assert_eq!(played.states(), ["context_full", "claims_done"]);
    assert!(methods(&played).contains(&"session/cancel".to_owned()));
}

#[test]
fn a_cancelled_session_ends_its_turn_first_and_counts_what_it_used() {
    let played = play("full", "[agent.context]\nhandoff_at = 0.99\n");
    let mut run = played.world.begin();
    until("the agent works", || played.file("was-full").exists());
    played.world.call("cancel parser --yes").exits(0);
    run.exits(3);
    assert!(methods(&played).contains(&"session/cancel".to_owned()));
    let total = played.world.json("usage")["total"].clone();
    assert_eq!(total["tokens"]["output"], json!(7), "{total:#}");
    played.is_whole();
}

#[test]
fn failures_of_an_agent_are_typed() {
    let other = play("version", "");
    other.world.run().exits(2).says("speaks another version of the Agent Client Protocol");
    play("unknown", "").fails("it stopped, `tired`");
    play("crash", "").fails("it ended without a final event, exit code 3");
}

#[test]
fn a_missing_login_is_reported_with_its_remedy() {
    let mut played = play("login", "");
    played.world.longhaul = played.world.longhaul.with("LONGHAUL_MACHINE_WAIT", "1");
    played.world.run().exits(4).says("acp: not logged in; log in with its own command");
    played.is_whole();
}

#[test]
fn a_driver_without_a_command_is_refused() {
    let world = World::new(&PLANS, 0.0);
    world.project.write("longhaul.toml", "agent = \"acp\"\n");
    world.project.commit("An agent");
    world.run().exits(2).says("the driver `acp` needs the command of an agent");
}
