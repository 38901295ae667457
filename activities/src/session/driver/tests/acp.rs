//! The recorded output of agents that speak the Agent Client Protocol.

use longhaul_workflows::contracts::WindowUse;

use super::*;

const EXPECTED: &str = r#"opencode_ok: Completed `Done: wrote hello.txt and ran the comman` 3929+42+3929+0 1.18.33
opencode_context_overflow: ContextFull `This model's maximum context length is 1` 0+0+0+0 1.18.33
claude_ok: Completed `Done: wrote hello.txt and ran the comman` 9+126+65670+600 25502 µ$ 0.100.0
claude_cancel: Interrupted `the turn was cancelled` 3+42+21754+200 9550 µ$ 0.100.0
claude_prompt_too_long: ContextFull `Prompt is too long` 0+0+0+0 9549 µ$ 0.100.0
claude_rate_limited: RateLimited `API Error: Request rejected (429) · This` 0+0+0+0 0.100.0
codex_ok: Completed `Done: wrote hello.txt and ran the comman` 16704+126+16703+0 2.6.0
codex_overflow_reported_as_end_turn: ContextFull `{"error": {"message": "This model's maxi` 5510+42+5510+0 2.6.0
gemini_ok: Completed `Done: wrote hello.txt and ran the comman` 37608+126+0+0 0.61.0
gemini_overflow: ContextFull `{"error":{"code":400,"message":"The inpu` 0+0+0+0 0.61.0
"#;

#[test]
fn ends_of_acp_agents_are_typed() {
    let names = [
        "opencode_ok",
        "opencode_context_overflow",
        "claude_ok",
        "claude_cancel",
        "claude_prompt_too_long",
        "claude_rate_limited",
        "codex_ok",
        "codex_overflow_reported_as_end_turn",
        "gemini_ok",
        "gemini_overflow",
    ];
    let found = names.map(|name| format!("{name}: {}\n", read(&format!("acp/{name}"), Some(0))));
    assert_eq!(found.concat(), EXPECTED);
}

#[test]
fn the_window_and_the_tool_calls_are_counted() {
    let mut saved = Vec::new();
    let mut record = record("acp", &mut saved);
    record.take(&captured("acp/opencode_ok"));
    let AgentProgress { messages, tools, window, .. } = record.progress().clone();
    assert_eq!((messages, tools), (1, 2));
    assert_eq!(window, Some(WindowUse { used: 7858, size: 128_000 }));
    let tail = record.tail();
    assert!(tail.contains("> execute: cat /project/hello.txt"), "{tail}");
}

#[test]
fn the_end_of_a_log_alone_has_a_transcript() {
    let log = captured("acp/opencode_ok");
    let middle = log.iter().position(|byte| *byte == b'\n').unwrap() * 4;
    let begin = middle + log[middle..].iter().position(|byte| *byte == b'\n').unwrap() + 1;
    let mut transcript = Transcript::of_log("0-1-session-acp.log").unwrap();
    let text = transcript.take(&log[begin..]);
    assert!(text.contains("> execute: cat /project/hello.txt"), "{text}");
    assert!(text.contains("Done: wrote hello.txt"), "{text}");
}
