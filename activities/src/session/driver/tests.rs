//! The recorded output of agents, as the drivers read it.

mod acp;
mod dialogue;

use std::path::Path;
use std::time::Duration;

use longhaul_workflows::contracts::{AgentProgress, Usage};

use super::*;
use crate::process::{Finished, Observer, Stopped};

fn captured(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/captures");
    std::fs::read(folder.join(format!("{name}.jsonl"))).unwrap()
}

fn finished(exit_code: Option<i32>, stopped: Option<Stopped>) -> Finished {
    Finished {
        exit_code,
        ended_by: exit_code.is_none().then(|| "killed by signal 9".into()),
        stopped,
        duration: Duration::ZERO,
        output_digest: String::new(),
        output_tail: String::new(),
        log: "log".into(),
    }
}

fn record<'a>(driver: &str, saved: &'a mut Vec<String>) -> Record<'a> {
    let save = |progress: &AgentProgress| saved.push(progress.conversation.clone());
    let driver = by_name(driver).unwrap();
    let silence = Some(Duration::from_mins(15));
    Record::new(driver, AgentProgress::default(), silence, Box::new(save))
}

/// The result of a capture, read in small pieces: the outcome, its message and the facts.
fn read(name: &str, exit_code: Option<i32>) -> String {
    let mut saved = Vec::new();
    let mut record = record(name.split('/').next().unwrap(), &mut saved);
    captured(name).chunks(777).for_each(|piece| record.take(piece));
    let end = record.end(&finished(exit_code, None));
    let facts = record.facts(end.outcome, None, 0);
    let Usage { input, output, cache_read, cache_write } = facts.usage;
    let message: String = end.message.lines().next().unwrap_or_default().chars().take(40).collect();
    let mut text = format!("{:?} `{message}`", end.outcome);
    text += &format!(" {input}+{output}+{cache_read}+{cache_write}");
    text += &facts.cost_micros.map(|cost| format!(" {cost} µ$")).unwrap_or_default();
    text += &facts.version.map(|version| format!(" {version}")).unwrap_or_default();
    if !facts.refused.is_empty() {
        text += &format!(" refused {}", facts.refused.join(" "));
    }
    drop(record);
    assert!(name.contains("unknown_id") || !saved.is_empty(), "{name}: the conversation is saved");
    text
}

fn check(name: &str, exit_code: Option<i32>, expected: &str) {
    assert_eq!(read(name, exit_code), expected, "{name}");
}

#[test]
fn ends_of_claude_are_typed() {
    let check = |name: &str, code, expected: &str| check(&format!("claude/{name}"), code, expected);
    let done = "Completed `Done: wrote hello.txt and ran the comman`";
    let limited = "RateLimited `API Error: Request rejected (429) · This` 0+0+0+0";
    check("ok", Some(0), &format!("{done} 9+126+65652+600 23863 µ$ 2.1.329"));
    let denied = "9+126+65706+600 23879 µ$";
    check("permission_denied", Some(0), &format!("{done} {denied} 2.1.329 refused Write Bash"));
    let older = format!("{done} {denied} 2.1.197 refused Write Bash");
    check("older_permission_denied", Some(0), &older);
    check("retry_429_then_ok", Some(0), &format!("{done} 9+126+65681+600 23871 µ$ 2.1.329"));
    let compacted = format!("{done} 15+210+109213+1000 39709 µ$ 2.1.329");
    check("autocompact_reactive_ok", Some(0), &compacted);
    let two_turns =
        "Completed `The command finished or was stopped.` 12+168+88674+800 32158 µ$ 2.1.329";
    check("hung_tool_backgrounded_two_results", Some(0), two_turns);
    let turns = "TurnLimit `Reached maximum number of turns (3)` 9+126+65576+600 23840 µ$ 2.1.329";
    check("max_turns", Some(1), turns);
    let budget = "Budget `Reached maximum budget ($0.15)` 12+168+599188+800 185312 µ$ 2.1.329";
    check("max_budget", Some(1), budget);
    check("rate_limited_final", Some(1), &format!("{limited} 2.1.329"));
    check("older_rate_limited", Some(1), &format!("{limited} 2.1.197"));
    let overloaded = "Overloaded `API Error: 529 Overloaded. This is a ser` 0+0+0+0 2.1.329";
    check("overloaded_final", Some(1), overloaded);
    let auth = "Auth `Invalid API key · Fix external API key` 0+0+0+0 2.1.329";
    check("auth_failed", Some(1), auth);
    check("billing", Some(1), "Billing `Credit balance is too low` 0+0+0+0 2.1.329");
    let refused =
        "Refused `API Error: Sonnet 4.5 can't help with th` 6+84+43555+400 15845 µ$ 2.1.329";
    check("refusal", Some(1), refused);
    let full = "ContextFull `Prompt is too long` 3+42+21745+200 7912 µ$ 2.1.329";
    check("prompt_too_long_autocompact_off", Some(1), full);
    check("sigint", Some(0), "Interrupted `interrupted` 3+42+21744+200 7912 µ$ 2.1.329");
    let unknown = "Protocol `No conversation found with session ID: 9` 0+0+0+0";
    check("resume_unknown_id", Some(1), unknown);
    // By a hook of the user.
    check("hook_stopped", Some(0), "Completed `` 3+42+21744+200 7912 µ$ 2.1.329");
}

#[test]
fn ends_of_codex_are_typed() {
    let check = |name: &str, code, expected: &str| check(&format!("codex/{name}"), code, expected);
    check("ok", Some(0), "Completed `` 15278+126+15275+0");
    check("resume", Some(0), "Completed `` 16000+126+15000+0");
    check("tool_failed", Some(0), "Completed `` 11000+84+10000+0");
    let full = "ContextFull `Codex ran out of room in the model's con` 5034+42+5033+0";
    check("context_overflow", Some(0), full);
    let limited = "RateLimited `exceeded retry limit, last status: 429 T` 0+0+0+0";
    check("rate_limited", Some(0), limited);
    let auth = "Auth `unexpected status 401 Unauthorized: stat` 0+0+0+0";
    check("auth_failed", Some(0), auth);
    let interrupted = "Interrupted `the turn was interrupted` 5034+42+5033+0";
    check("interrupt", Some(0), interrupted);
    let unknown = "Protocol `no rollout found for thread id 01a1fd9f-` 0+0+0+0";
    check("resume_unknown_id", Some(0), unknown);
}

#[test]
fn ends_of_opencode_are_typed() {
    let check =
        |name: &str, code, expected: &str| check(&format!("opencode/{name}"), code, expected);
    check("ok", Some(0), "Completed `` 11651+126+11650+0");
    let full = "ContextFull `This model's maximum context length is 1` 3845+42+3845+0";
    check("context_overflow_autocompact_off", Some(1), full);
    let compacted = "ToolsRefused `it ended at a refused tool call` 8052+126+8051+0 refused write";
    check("autocompact", Some(1), compacted);
    let rejected = "ToolsRefused `it ended at a refused tool call` 7727+84+7726+0 refused bash";
    check("permission_auto_rejected_rc0", Some(0), rejected);
    let cut = "TurnLimit `the answer reached its length limit` 7729+84+7729+0";
    check("length_stop_rc0", Some(0), cut);
    check("auth_failed", Some(1), "Auth `Incorrect API key provided` 0+0+0+0");
}

#[test]
fn an_output_without_a_final_event_is_a_crash() {
    let killed = "Crashed `killed by signal 9` 3+1+21744+200 2.1.329";
    check("claude/sigkill_truncated", None, killed);
    check("claude/sigkill_truncated", Some(0), "Crashed `exit code 0` 3+1+21744+200 2.1.329");
    check("claude/sigterm_truncated", Some(143), "Crashed `exit code 143` 3+1+21744+200 2.1.329");
    let codex = "Crashed `killed by signal 9, `Model metadata for ` 0+0+0+0";
    check("codex/sigkill_truncated", None, codex);
    check("opencode/sigkill_truncated", None, "Crashed `killed by signal 9` 0+0+0+0");
}

/// The end of an agent that repeats a failed request for ever, and is ended for that.
fn check_given_up(driver: &str, lines: &[&str], expected: AgentOutcome) {
    let mut saved = Vec::new();
    let mut record = record(driver, &mut saved);
    let patience =
        |record: &Record<'_>| record.gives_up_at().unwrap() - tokio::time::Instant::now();
    assert!(patience(&record) > Duration::from_mins(14), "it waits for a first answer");
    for line in lines {
        record.take(format!("{line}\n").as_bytes());
    }
    let is_retrying = expected != AgentOutcome::Completed;
    assert_eq!(patience(&record) <= Duration::from_mins(1), is_retrying, "{lines:?}");
    if is_retrying {
        let end = record.end(&finished(None, Some(Stopped::GivenUp)));
        assert_eq!(end.outcome, expected, "{lines:?}");
    }
}

#[test]
fn agents_that_repeat_failed_requests_for_ever_are_noticed() {
    let failed = |error: &str, small: bool| {
        format!(
            "timestamp=2026-11-22T18:41:52.376Z level=ERROR run=f2b8a684 message=\"stream error\" \
             small={small} agent=build error.error=\"AI_APICallError: {error}\""
        )
    };
    let limited = failed("This request would exceed your organization's rate limit.", false);
    check_given_up("opencode", &[&limited, &limited], AgentOutcome::RateLimited);
    let overloaded = failed("Internal server error", false);
    check_given_up("opencode", &[&overloaded], AgentOutcome::Overloaded);
    let title = failed("Internal server error", true);
    check_given_up("opencode", &[&title], AgentOutcome::Completed);
    let offline = concat!(
        r#"{"method":"error","params":{"willRetry":true,"#,
        r#""error":{"message":"Reconnecting... waiting for network"}}}"#
    );
    check_given_up("codex", &[offline, offline], AgentOutcome::Overloaded);
    let answered = concat!(
        r#"{"method":"item/completed","#,
        r#""params":{"item":{"id":"1","type":"agentMessage","text":"x"}}}"#
    );
    check_given_up("codex", &[offline, answered], AgentOutcome::Completed);
    let retry = r#"{"type":"system","subtype":"api_retry","retry_delay_ms":9,"error_status":429}"#;
    check_given_up("claude", &[retry], AgentOutcome::RateLimited);
}

#[test]
fn a_tool_at_work_is_not_a_silent_model() {
    let mut saved = Vec::new();
    let mut record = record("codex", &mut saved);
    let started =
        r#"{"method":"item/started","params":{"item":{"id":"1","type":"commandExecution"}}}"#;
    record.take(format!("{started}\n").as_bytes());
    assert_eq!(record.gives_up_at(), None);
    record.take(format!("{}\n", started.replace("started", "completed")).as_bytes());
    assert!(record.gives_up_at().is_some());
}

#[test]
fn a_silent_model_is_overloaded() {
    let mut saved = Vec::new();
    let mut record = record("opencode", &mut saved);
    let end = record.end(&finished(None, Some(Stopped::GivenUp)));
    let message = "the model gave no answer for 900 s";
    assert_eq!((end.outcome, end.message.as_str()), (AgentOutcome::Overloaded, message));
}

#[test]
fn a_transcript_is_for_people() {
    let mut transcript = Transcript::of_log("3.0-1-session-codex.2.log").unwrap();
    let text = transcript.take(&captured("codex/tool_failed"));
    let expected = "\
* conversation 01a20972-c28a-7af0-a8da-aded856be489, model scripted
Model metadata for `scripted` not found. Defaulting to fallback metadata; this can degrade \
performance and cause issues.
> shell: /bin/bash -lc 'echo oops >&2; exit 3'
  failed:
    oops
* 3 % of the window is filled

The command failed.

* 4 % of the window is filled
* tokens so far: 11000 input, 10000 cached input, 84 output
* end of the turn
";
    assert_eq!(text, expected);
    assert!(
        Transcript::of_log("3.0-1-session.log").is_none(),
        "the output of a command is its own"
    );
}

#[test]
fn arguments_of_the_user_replace_the_defaults() {
    let args = |driver, conversation, args: &[&str]| {
        let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
        let launch =
            Launch { model: Some("m"), args: &args, conversation, cost_micros: Some(1_500_000) };
        by_name(driver).unwrap().args(&launch).join(" ")
    };
    assert_eq!(
        args("claude", Conversation::New("ID"), &["--max-turns", "9"]),
        "-p --input-format stream-json --output-format stream-json --verbose \
         --allowedTools Bash,Write,Edit,Read --permission-mode acceptEdits --model m \
         --max-budget-usd 1.50 --session-id ID --max-turns 9"
    );
    assert_eq!(
        args(
            "claude",
            Conversation::Resumed("ID"),
            &["--allowedTools=Read", "--permission-mode", "plan", "--max-budget-usd", "9"]
        ),
        "-p --input-format stream-json --output-format stream-json --verbose --model m --resume ID \
         --allowedTools=Read --permission-mode plan --max-budget-usd 9"
    );
    let given = ["--sandbox", "read-only", "-c", "x=1", "--sandbox=danger-full-access"];
    assert_eq!(args("codex", Conversation::Resumed("ID"), &given), "app-server -c x=1");
    assert_eq!(
        args("opencode", Conversation::Resumed("ID"), &[]),
        "run --format json --print-logs --log-level ERROR --model m --session ID"
    );
}

#[test]
fn codex_is_confined_by_longhaul_only_without_its_own_sandbox() {
    let is_off = |args: &[&str]| {
        codex::has_no_sandbox(&args.iter().map(|&arg| arg.to_owned()).collect::<Vec<_>>())
    };
    assert!(is_off(&["--sandbox", "danger-full-access"]));
    assert!(is_off(&["-s", "danger-full-access", "-c", "x=1"]));
    assert!(is_off(&["--sandbox=danger-full-access"]));
    assert!(!is_off(&[]) && !is_off(&["-s", "workspace-write"]));
}
