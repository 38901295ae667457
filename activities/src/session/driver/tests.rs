//! The recorded output of agents, and what the drivers make of it.

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

/// Reads a capture in small pieces; returns the outcome, its message and the facts.
fn check(name: &str, exit_code: Option<i32>, expected: &str) {
    let mut saved = Vec::new();
    let mut record = record(name.split('/').next().unwrap(), &mut saved);
    captured(name).chunks(777).for_each(|piece| record.take(piece));
    let end = record.end(&finished(exit_code, None));
    let facts = record.facts(end.outcome, None);
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
    assert_eq!(text, expected, "{name}");
    assert!(name.contains("unknown_id") || !saved.is_empty(), "{name}: the conversation is saved");
}

#[test]
fn dump() {
    for (name, code) in [("claude/ok", Some(0)), ("claude/permission_denied", Some(0)), ("claude/older_permission_denied", Some(0)), ("claude/max_turns", Some(1)), ("claude/max_budget", Some(1)), ("claude/retry_429_then_ok", Some(0)),("claude/rate_limited_final", Some(1)),("claude/older_rate_limited", Some(1)),("claude/overloaded_final", Some(1)),("claude/auth_failed", Some(1)),("claude/billing", Some(1)),("claude/refusal", Some(1)),("claude/prompt_too_long_autocompact_off", Some(1)),("claude/autocompact_reactive_ok", Some(0)),("claude/hung_tool_backgrounded_two_results", Some(0)),("claude/sigint", Some(0)),("claude/sigkill_truncated", None),("claude/sigterm_truncated", Some(143)),("claude/resume_unknown_id", Some(1)),
    ("codex/exec_ok", Some(0)),("codex/exec_resume", Some(0)),("codex/tool_failed", Some(0)),("codex/context_overflow", Some(1)),("codex/rate_limited", Some(1)),("codex/quota", Some(1)),("codex/auth_failed_retries", Some(1)),("codex/incomplete_max_output", Some(1)),("codex/mcp_requires_approval", Some(0)),("codex/sigkill_truncated", None),
    ("opencode/ok", Some(0)),("opencode/context_overflow_autocompact_off", Some(1)),("opencode/autocompact", Some(1)),("opencode/permission_auto_rejected_rc0", Some(0)),("opencode/length_stop_rc0", Some(0)),("opencode/auth_failed", Some(1)),("opencode/sigkill_truncated", None)] {
        let found = std::panic::catch_unwind(|| check(name, code, "@"));
        let text = found.unwrap_err();
        println!("@@ {name} {code:?} {}", text.downcast_ref::<String>().unwrap().lines().find(|l| l.contains("left")).unwrap_or("?"));
    }
}
