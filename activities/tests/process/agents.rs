//! Sessions of known agents: programs that print recorded lines stand for them.

use longhaul_activities::session::preflight;
use longhaul_engine::{Failure, FailureKind};
use longhaul_workflows::contracts::{AgentOutcome, SessionEnding, SessionReport};
use longhaul_workflows::settings::Driver;

use super::session::{input, perform};
use super::support::World;

const BEGUN: &str =
    r#"{"type":"system","subtype":"init","session_id":"S","claude_code_version":"9"}"#;
const DONE: &str =
    r#"{"type":"result","subtype":"success","is_error":false,"terminal_reason":"completed"}"#;
const LIMITED: &str = r#"{"type":"result","subtype":"success","is_error":true,"api_error_status":429,"result":"slow down"}"#;
const READY: &str = r#"{"type":"control_response","response":{"subtype":"success","request_id":"initialize","response":{}}}"#;
const REFUSED: &str =
    r#"{"type":"system","subtype":"permission_denied","tool_name":"Write","tool_use_id":"t"}"#;
const SAID: &str = r#"{"type":"assistant","message":{"id":"m","content":[{"type":"text","text":"Hello."}],"usage":{"input_tokens":5}}}"#;
const UNKNOWN: &str = r#"{"type":"result","subtype":"error_during_execution","is_error":true,"errors":["No conversation found"]}"#;

/// Runs a session of the driver `claude` with a script as its program. It records its arguments.
async fn run(world: &World, script: &str) -> Result<SessionReport, Failure> {
    let script = format!("#!/bin/sh\necho \"$*\" >>../../../../out/args\n{script}\n");
    world.script("root/agent.sh", &script);
    let mut input = input(world);
    input.agent.driver = Driver::Claude;
    input.agent.command = vec!["./agent.sh".into()];
    perform(world, input).await
}

fn print(lines: &[&str]) -> String {
    lines.iter().flat_map(|line| ["echo '", line, "'\n"]).collect()
}

fn outcome(report: &SessionReport) -> AgentOutcome {
    report.agent.as_ref().unwrap().outcome
}

#[tokio::test]
async fn a_session_has_a_typed_end() {
    let world = World::with_git().await;
    let report = run(&world, &print(&[BEGUN, SAID, DONE])).await.unwrap();
    assert_eq!(report.ending, SessionEnding::ClaimsDone);
    let tokens = "* tokens so far: 5 input, 0 cached input, 0 output";
    let expected =
        format!("* conversation S, version 9\n\nHello.\n\n{tokens}\n* end of the turn\n");
    assert_eq!(report.output_tail, expected);
    let facts = report.agent.unwrap();
    assert_eq!((facts.version.as_deref(), facts.conversation.as_deref()), (Some("9"), Some("S")));
    assert!(report.log.ends_with("-session-claude.log"), "{}", report.log);
}

#[tokio::test]
async fn an_agent_without_a_final_event_has_crashed() {
    let world = World::with_git().await;
    let report = run(&world, &print(&[BEGUN, SAID])).await.unwrap();
    assert_eq!(outcome(&report), AgentOutcome::Crashed);
    let reason = "claude: it ended without a final event, exit code 0".to_owned();
    assert_eq!(report.ending, SessionEnding::Failed { reason, lacks_command: false });
}

#[tokio::test]
async fn refused_writes_are_not_done_unless_something_changed() {
    let world = World::with_git().await;
    let report = run(&world, &print(&[BEGUN, REFUSED, DONE])).await.unwrap();
    assert_eq!(outcome(&report), AgentOutcome::ToolsRefused);
    assert_eq!(report.agent.unwrap().refused, ["Write"]);

    let world = World::with_git().await;
    let script = format!("sleep 0.1; echo x >new.txt\n{}", print(&[BEGUN, REFUSED, DONE]));
    let report = run(&world, &script).await.unwrap();
    assert_eq!(report.ending, SessionEnding::ClaimsDone);
}

#[tokio::test]
async fn the_version_is_read_in_the_project_directory() {
    let world = World::with_git().await;
    let script = format!(r#"[ "$1" = --version ] && pwd >place; echo 7; {}"#, print(&[DONE]));
    let report = run(&world, &script).await.unwrap();
    assert_eq!(report.agent.unwrap().version.as_deref(), Some("7"));
    assert_eq!(world.read("root/place").trim(), world.path("root").to_str().unwrap());
}

#[tokio::test]
async fn a_limited_session_waits_and_goes_on_as_it_was_left() {
    let world = World::with_git().await;
    let script = format!("echo half >half.txt\n{}exit 1", print(&[BEGUN, SAID, LIMITED]));
    let failure = run(&world, &script).await.unwrap_err();
    assert!(matches!(failure.kind, FailureKind::RateLimited { .. }), "{failure:?}");
    assert_eq!(failure.message, "claude: the provider limits the rate of requests (slow down)");

    let answer = format!("read -r request\n{}", print(&[READY]));
    let script = format!(
        "cat half.txt\n{answer}grep -m 1 -o '# Session resumed'\n{}",
        print(&[BEGUN, DONE])
    );
    let report = run(&world, &script).await.unwrap();
    assert_eq!(report.ending, SessionEnding::ClaimsDone);
    assert!(report.output_tail.starts_with("half\n# Session resumed\n"), "{}", report.output_tail);
    let args = world.read("out/args");
    let [first, second] = args.lines().collect::<Vec<_>>()[..] else { panic!("{args}") };
    assert!(first.contains("--session-id ") && second.contains("--resume S"), "{args}");
    assert_eq!(report.agent.unwrap().usage.input, 5, "of both attempts");
}

#[tokio::test]
async fn a_new_conversation_replaces_one_that_cannot_be_resumed() {
    let world = World::with_git().await;
    run(&world, &print(&[BEGUN, LIMITED])).await.unwrap_err();
    let script = format!(
        "case \"$*\" in\n*--resume*) {}exit 1 ;;\nesac\n{}",
        print(&[UNKNOWN]),
        print(&[BEGUN, SAID, DONE])
    );
    let report = run(&world, &script).await.unwrap();
    assert_eq!(report.ending, SessionEnding::ClaimsDone);
    assert_eq!(world.read("out/args").matches("--session-id").count(), 2);
}

#[tokio::test]
async fn an_agent_that_repeats_a_failed_request_for_ever_is_ended() {
    let world = World::with_git().await;
    let retry =
        r#"{"type":"system","subtype":"api_retry","error_status":529,"error":"overloaded"}"#;
    world
        .script("root/agent.sh", &format!("#!/bin/sh\nwhile echo '{retry}'; do sleep 0.1; done\n"));
    let mut input = input(&world);
    input.agent.driver = Driver::Claude;
    input.agent.command = vec!["./agent.sh".into()];
    input.agent.silence_timeout.0 = 1;
    let failure = perform(&world, input).await.unwrap_err();
    assert!(matches!(failure.kind, FailureKind::RateLimited { .. }), "{failure:?}");
    assert!(failure.message.contains("overloaded (529)"), "{failure}");
}

#[tokio::test]
async fn a_missing_login_is_found_without_a_call() {
    let world = World::new();
    let home = world.text_path("out");
    world.script("root/agent.sh", "#!/bin/sh\necho '1.2.3 (an agent)'\n");
    let mut agent = input(&world).agent;
    (agent.driver, agent.command) = (Driver::Claude, vec!["./agent.sh".into()]);
    let found = preflight(&world.path("root"), &agent).await;
    assert_eq!((found.problem, found.version.as_deref()), (None, Some("1.2.3")));
    agent
        .env
        .insert("ANTHROPIC_API_KEY".into(), longhaul_workflows::settings::EnvSource::File(home));
    assert_eq!(preflight(&world.path("root"), &agent).await.login, None);
    agent.command = vec!["./none.sh".into()];
    let found = preflight(&world.path("root"), &agent).await;
    assert_eq!((found.problem, found.version), (Some("is not there"), None));
}
