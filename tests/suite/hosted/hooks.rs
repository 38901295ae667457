//! Hooks of the user: what they see, and what they refuse.

use longhaul_model_server::{Answer, Options, Part, Reply, Request};
use serde_json::json;

use super::{Hosted, PLANS, results, works};

#[test]
fn a_hook_refuses_a_tool_call_and_the_model_reads_why() {
    let script = |request: &Request| match results(request) {
        0 => Answer::call("shell", &json!({ "command": "touch forbidden" })).into(),
        1 => {
            let Some(Part::Result(refusal)) = request.parts().last() else { return Reply::Close };
            let content = format!("{refusal}\nfinished\n");
            Answer::call("write", &json!({ "path": "parser.txt", "content": content })).into()
        }
        _ => Answer::call("finish", &json!({ "summary": "Written." })).into(),
    };
    let hook = "[agent.hooks]\nbefore_tool = '''\n\
                if grep -q forbidden; then echo not that file; exit 2; fi'''\n";
    let hosted = Hosted::new(&PLANS[..1], hook, Options::default(), script);
    hosted.world.run().exits(0).says("1 of 1 features pass");
    let text = hosted.world.project.git(&["show", "main:parser.txt"]);
    assert!(text.contains("A hook of the user refuses this call: not that file"), "{text}");
    let files = hosted.world.project.git(&["ls-tree", "--name-only", "main"]);
    assert!(!files.lines().any(|file| file == "forbidden"), "{files}");
    hosted.world.call("replay --all").exits(0).says("0 diverged");
}

#[test]
fn a_hook_refuses_the_end_until_it_is_satisfied() {
    let script = |request: &Request| {
        let is_told = request.parts().any(
            |part| matches!(part, Part::Text(text) if text.contains("refuses the end: a changelog")),
        );
        match (results(request), is_told) {
            (3.., true) if request.last_result() != Some("The session ends.") => {
                Answer::call("finish", &json!({ "summary": "With a changelog." })).into()
            }
            (_, true) => {
                Answer::call("write", &json!({ "path": "CHANGELOG", "content": "parser\n" })).into()
            }
            _ => works(request),
        }
    };
    let hook = "[agent.hooks]\nsession_end = '''\n\
                test -e CHANGELOG || { echo a changelog is missing; exit 2; }'''\n";
    let hosted = Hosted::new(&PLANS[..1], hook, Options::default(), script);
    hosted.world.run().exits(0).says("1 of 1 features pass");
    assert_eq!(hosted.world.project.git(&["show", "main:CHANGELOG"]), "parser");
}

#[test]
fn a_hook_that_fails_is_a_refusal() {
    let hook = "[agent.hooks]\nbefore_tool = 'exit 7'\n";
    let script = |request: &Request| match results(request) {
        0 => Answer::call("list", &json!({})).into(),
        _ => Answer::call("finish", &json!({ "summary": "It cannot be done." })).into(),
    };
    let hosted = Hosted::new(&PLANS[..1], hook, Options::default(), script);
    hosted.world.run().exits(1);
    let session = format!("{}/parser/1/1", hosted.id());
    let transcript = hosted.world.call(&format!("session transcript {session} --full"));
    transcript.exits(0).says("the hook failed (exit code 7)");
}
