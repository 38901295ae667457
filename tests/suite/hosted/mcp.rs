//! Tools of MCP servers, by a small real server.

use longhaul_model_server::{Answer, Options, Outcome, Part, Reply, Request};
use longhaul_tests::wait::until;
use serde_json::json;

use super::{Hosted, PLANS, results};

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
        hosted.world.call("why parser").out.contains("the MCP server `files`")
    });
    run.terminate();
    run.wait_for(longhaul_tests::wait::PATIENCE);
    assert_eq!(hosted.server.count(Outcome::Answered), 0, "nothing is paid");
}
