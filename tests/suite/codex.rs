//! Sessions of the driver `codex`, with a scripted agent: `tests/src/bin/codex-agent.rs`.

use std::fs;

use longhaul_tests::wait::until;
use serde_json::json;

use crate::played::Played;

const AGENT: &str = env!("CARGO_BIN_EXE_codex-agent");

fn play(scenario: &str, settings: &str) -> Played {
    let settings = format!(
        "args = [\"--sandbox\", \"danger-full-access\"]\nenv = {{ OPENAI_API_KEY = \"dummy\" }}\n\
         {settings}"
    );
    Played::new("codex", AGENT, scenario, &settings)
}

#[test]
fn an_agent_completes_a_feature_and_its_history_tells_how() {
    let played = play("done", "model = \"small\"\n");
    played.passes();
    let methods = ["initialize", "initialized", "thread/start", "turn/start"];
    assert_eq!(played.methods(), methods);
    let params = played.requests()[2]["params"].clone();
    let given = (&params["model"], &params["sandbox"], &params["approvalPolicy"]);
    assert_eq!(given, (&json!("small"), &json!("danger-full-access"), &json!("never")));
    let session = played.world.json("session show parser");
    let tokens = json!({ "input": 395, "output": 7, "cache_read": 5, "cache_write": 0 });
    assert_eq!(session["tokens"], tokens, "{session:#}");
    let facts = ["driver", "model", "conversation", "tool_calls", "turns", "window_share"];
    let facts = facts.map(|name| session[name].clone());
    let expected =
        [json!("codex"), json!("codex-x"), json!("scripted-1"), json!(1), json!(1), json!(0.4)];
    assert_eq!(facts, expected, "{session:#}");
    let logs = played.world.call("logs parser");
    logs.exits(0).says("> shell: echo finished").says("It is written.");
    logs.says("* 40 % of the window is filled");
}

#[test]
fn a_nearly_full_window_ends_the_turn_and_a_fresh_session_continues() {
    let played = play("full", "");
    played.passes();
    assert_eq!(played.states(), ["context_full", "claims_done"]);
    assert!(played.methods().contains(&"turn/interrupt".to_owned()));
}

#[test]
fn a_cancelled_session_ends_its_turn_first_and_counts_what_it_used() {
    let played = play("full", "[agent.context]\nhandoff_at = 0.99\n");
    let mut run = played.world.begin();
    until("the agent works", || played.file("was-full").exists());
    until("its usage is recorded", || {
        played.world.json("session show parser")["tokens"]["output"] == 7
    });
    played.world.call("cancel parser --yes").exits(0);
    run.exits(3);
    assert_eq!(played.methods().last().unwrap(), "turn/interrupt");
    assert_eq!(played.world.json("usage")["total"]["tokens"]["output"], json!(7));
    played.is_whole();
}

/// Kills Longhaul while a tool works, and runs again; returns what the second agent got.
fn cut(scenario: &str) -> Vec<String> {
    let played = play(scenario, "");
    fs::write(played.file("held"), "").unwrap();
    let mut run = played.world.begin();
    until("the agent works", || played.is_at_work());
    assert!(run.kill(), "{}", run.output());
    until("all processes have ended", || played.world.longhaul.left_over().is_empty());
    fs::remove_file(played.file("held")).unwrap();
    played.passes();
    played.methods()[4..].to_vec()
}

#[test]
fn a_cut_session_goes_on_in_its_thread() {
    assert_eq!(cut("done"), ["initialize", "initialized", "thread/resume", "turn/start"]);
}

#[test]
fn an_agent_that_forgets_begins_a_new_thread() {
    let resumed = ["initialize", "initialized", "thread/resume"];
    let anew = ["initialize", "initialized", "thread/start", "turn/start"];
    assert_eq!(cut("forgets"), [&resumed[..], &anew[..]].concat());
}
