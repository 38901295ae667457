//! Tools of MCP servers, by a small real server.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use longhaul_model_server::{Answer, Hold, Options, Outcome, Part, Reply, Request};
use longhaul_tests::command::Running;
use longhaul_tests::mcp::HttpMcpServer;
use longhaul_tests::wait::until;
use serde_json::json;

use super::{Hosted, PLANS, feature, results};

/// The settings of the server. The program is built with the tests.
fn settings(command: &str) -> String {
    format!("[agent.mcp.files]\ncommand = ['{command}']\n")
}

const SERVER: &str = env!("CARGO_BIN_EXE_mcp-server");

/// The last result in a conversation.
fn last(request: &Request) -> String {
    match request.parts().last() {
        Some(Part::Result(result)) => result.clone(),
        _ => String::new(),
    }
}

fn finish() -> Reply {
    Answer::call("finish", &json!({ "summary": "It is done." })).into()
}

#[test]
fn the_agent_calls_tools_of_a_server() {
    let script = |request: &Request| {
        let word = last(request);
        match results(request) {
            0 => Answer::call("mcp__files__word", &json!({})).into(),
            1 => {
                let line = json!({ "file": "parser.txt", "line": word });
                Answer::call("mcp__files__append", &line).into()
            }
            _ => finish(),
        }
    };
    let hosted = Hosted::new(&PLANS[..1], &settings(SERVER), Options::default(), script);
    hosted.world.run().exits(0).says("1 of 1 features pass");
    assert_eq!(hosted.world.project.git(&["show", "main:parser.txt"]), "finished");
    let history = hosted.world.call(&format!("history {}/parser/1/1", hosted.id()));
    history.exits(0).says("mcp__files__append");
    assert_eq!(hosted.world.longhaul.left_over(), Vec::<String>::new());
    hosted.world.call("replay --all").exits(0).says("0 diverged");
}

#[test]
fn the_agent_calls_tools_of_a_server_over_http() {
    const KEY: &str = "key-of-the-server-123";
    let server = HttpMcpServer::start(KEY);
    let url = &server.url;
    let settings = format!(
        "[agent.mcp.files]\nurl = '{url}'\nkey_env = 'FILES_KEY'\n[agent.env]\nFILES_KEY = '{KEY}'\n"
    );
    let script = |request: &Request| match results(request) {
        0 => Answer::call("mcp__files__word", &json!({})).into(),
        1 => {
            let line = format!("printf {} > parser.txt", last(request));
            Answer::call("shell", &json!({ "command": line })).into()
        }
        _ => finish(),
    };
    let hosted = Hosted::new(&PLANS[..1], &settings, Options::default(), script);
    hosted.world.run().exits(0).says("1 of 1 features pass");
    assert_eq!(hosted.world.project.git(&["show", "main:parser.txt"]), "finished");
    assert_eq!(server.refused(), 0);
    let history = hosted.world.call(&format!("history {}/parser/1/1 -o json", hosted.id()));
    assert!(!history.stdout.contains(KEY), "{}", history.stdout);
}

/// Counts three times, then writes the last answer.
fn counts(request: &Request) -> Reply {
    match results(request) {
        0..3 => Answer::call("mcp__files__count", &json!({})).into(),
        3 => {
            let content = format!("{}\nfinished\n", last(request));
            let path = format!("{}.txt", feature(request));
            Answer::call("write", &json!({ "path": path, "content": content })).into()
        }
        _ => finish(),
    }
}

#[test]
fn a_session_keeps_its_server() {
    let server = HttpMcpServer::start("key-123");
    let over_http = format!(
        "[agent.mcp.files]\nurl = '{}'\nkey_env = 'FILES_KEY'\n[agent.env]\nFILES_KEY = 'key-123'\n",
        server.url
    );
    for settings in [settings(SERVER), over_http] {
        let hosted = Hosted::new(&PLANS, &settings, Options::default(), counts);
        hosted.world.run().exits(0).says("2 of 2 features pass");
        for id in ["parser", "table"] {
            let content = hosted.world.project.git(&["show", &format!("main:{id}.txt")]);
            assert_eq!(content, "call 3\nfinished", "each session has its own");
        }
        assert_eq!(hosted.world.longhaul.left_over(), Vec::<String>::new());
        hosted.world.call("replay --all").exits(0).says("0 diverged");
    }
}

/// A run that has counted twice; the model's next answer is held.
fn after_two_calls(hold: &Hold) -> (Hosted, Running) {
    let (held, calls) = (hold.clone(), Arc::new(AtomicUsize::new(0)));
    let seen = Arc::clone(&calls);
    let script = move |request: &Request| {
        seen.fetch_max(results(request), Ordering::SeqCst);
        match results(request) {
            2 => Reply::Held(held.clone(), Box::new(counts(request))),
            _ => counts(request),
        }
    };
    let hosted = Hosted::new(&PLANS[..1], &settings(SERVER), Options::default(), script);
    let run = hosted.world.begin();
    until("the model is asked for the third call", || calls.load(Ordering::SeqCst) == 2);
    (hosted, run)
}

#[test]
fn the_agent_reads_that_its_server_was_started_again() {
    let hold = Hold::new();
    let (hosted, mut run) = after_two_calls(&hold);
    assert!(run.kill());
    hold.release();
    hosted.world.run().exits(0).says("1 of 1 features pass");
    assert_eq!(
        hosted.world.project.git(&["show", "main:parser.txt"]),
        "[The server files was started again: what it held is lost.]\ncall 1\nfinished"
    );
    assert_eq!(hosted.world.longhaul.left_over(), Vec::<String>::new());
}

#[test]
fn a_cancelled_session_ends_its_server() {
    let hold = Hold::new();
    let (hosted, mut run) = after_two_calls(&hold);
    let servers = || hosted.world.longhaul.left_over().concat().matches("mcp-server").count();
    assert!(servers() > 0, "it is kept between the calls");
    hosted.world.call("cancel parser --wait").exits(0);
    assert_eq!(servers(), 0);
    hold.release();
    run.terminate();
    run.wait_for(longhaul_tests::wait::PATIENCE);
}

#[test]
fn a_server_over_http_that_refuses_or_is_away_costs_nothing() {
    let server = HttpMcpServer::start("right");
    let wrong = "key_env = 'FILES_KEY'\n[agent.env]\nFILES_KEY = 'wrong'\n";
    for (url, key, reason) in [
        (&*server.url, wrong, "401"),
        (&*server.url, "key_env = 'LONGHAUL_TEST_NO_KEY'\n", "LONGHAUL_TEST_NO_KEY"),
        ("http://127.0.0.1:1/mcp", "", "Connection refused"),
    ] {
        let settings = format!("[agent.mcp.files]\nurl = '{url}'\n{key}");
        let hosted = Hosted::new(&PLANS[..1], &settings, Options::default(), |_| finish());
        let mut run = hosted.world.begin();
        until(&format!("{reason} is shown"), || {
            hosted.world.call("why parser").stdout.contains(reason)
        });
        run.terminate();
        run.wait_for(longhaul_tests::wait::PATIENCE);
        assert_eq!(hosted.server.count(Outcome::Answered), 0, "nothing is paid");
    }
    for settings in ["url = 'files'", "url = 'http://x/'\ncommand = ['x']", ""] {
        let settings = format!("[agent.mcp.files]\n{settings}\n");
        let hosted = Hosted::new(&PLANS[..1], &settings, Options::default(), |_| finish());
        hosted.world.run().exits(2).says("[agent.mcp.files]");
    }
}

#[test]
fn a_call_of_a_killed_process_is_not_repeated() {
    let script = |request: &Request| {
        let line = json!({ "file": "parser.txt", "line": "finished", "hangs": true });
        match results(request) {
            0 => Answer::call("mcp__files__append", &line).into(),
            _ if last(request).contains("its outcome is unknown") => finish(),
            _ => Answer::call("shell", &json!({ "command": "false" })).into(),
        }
    };
    let hosted = Hosted::new(&PLANS[..1], &settings(SERVER), Options::default(), script);
    let mut run = hosted.world.begin();
    let trees = hosted.world.project.home();
    until("the tool has changed the file", || found(&trees, "parser.txt"));
    assert!(run.kill());
    hosted.world.run().exits(0).says("1 of 1 features pass");
    assert_eq!(hosted.world.project.git(&["show", "main:parser.txt"]), "finished", "once");
    assert_eq!(hosted.world.longhaul.left_over(), Vec::<String>::new());
}

/// Whether a file is somewhere below a directory.
fn found(directory: &std::path::Path, name: &str) -> bool {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).any(|path| {
        path.file_name().is_some_and(|found| found == name)
            || path.is_dir() && !path.is_symlink() && found(&path, name)
    })
}

#[test]
fn a_missing_or_broken_server_is_found_before_the_first_call() {
    let missing = settings("/nonexistent/server");
    let hosted = Hosted::new(&PLANS[..1], &missing, Options::default(), |_| finish());
    hosted.world.run().exits(2).says("of [agent.mcp.files]");
    hosted.world.call("doctor .").exits(1).says("of [agent.mcp.files]");

    let broken = settings("/bin/true");
    let hosted = Hosted::new(&PLANS[..1], &broken, Options::default(), |_| finish());
    let mut run = hosted.world.begin();
    until("the reason is shown", || {
        hosted.world.call("why parser").stdout.contains("the MCP server `files`")
    });
    run.terminate();
    run.wait_for(longhaul_tests::wait::PATIENCE);
    assert_eq!(hosted.server.count(Outcome::Answered), 0, "nothing is paid");
}
