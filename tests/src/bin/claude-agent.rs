//! An agent that speaks as Claude Code does with `stream-json`, and works by a script:
//! `claude-agent DIRECTORY SCENARIO`. It writes the lines that it gets to DIRECTORY/requests, and
//! waits while DIRECTORY/held exists.

use std::fs;
use std::process::exit;

use longhaul_tests::player::Player;
use serde_json::{Value, json};

const VERSION: &str = "2.1.330";

fn main() {
    if std::env::args().any(|arg| arg == "--version") {
        println!("{VERSION} (Claude Code)");
        return;
    }
    let mut agent = Agent(Player::of_this_process());
    while let Some(line) = agent.0.hear() {
        match line["request"]["subtype"].as_str() {
            Some("initialize") if agent.0.scenario() == "older" => respond(&line, &json!({})),
            Some("initialize") => respond(&line, &json!({ "claude_code_version": VERSION })),
            Some("get_context_usage") => respond(&line, &json!({ "maxTokens": 1000 })),
            Some(_) => exit(4),
            None => agent.work(),
        }
    }
}

struct Agent(Player);

impl Agent {
    fn work(&mut self) {
        send(&json!({
            "type": "system", "subtype": "init", "session_id": "c1",
            "claude_code_version": VERSION, "model": "claude-x",
        }));
        if self.0.is_to_fill() {
            return self.fill();
        }
        match self.0.scenario() {
            "endless" => return while !self.batch(100) {},
            "hangs" => return self.hang(),
            _ => {}
        }
        answer(100, &[text("I begin."), call("t1", "echo finished")]);
        self.0.work();
        tool_result("t1");
        assert!(!self.is_stopped_after_batch(None), "the window is not full");
        answer(400, &[text("It is written.")]);
        end(&json!({ "subtype": "success", "is_error": false, "terminal_reason": "completed" }));
    }

    /// Fills the window with an answer that calls a sub-agent. That one works on; the turn ends
    /// when all tools of the answer have ended.
    fn fill(&mut self) {
        answer(920, &[call("t1", "echo one"), call("t2", "echo two")]);
        tool_result("t1");
        if self.is_stopped_after_batch(Some("a1")) {
            exit(5);
        }
        tool_result("t2");
        if !self.is_stopped_after_batch(None) {
            exit(6);
        }
        stopped();
    }

    /// An answer with a tool; returns whether the turn ended after it.
    fn batch(&mut self, used: u64) -> bool {
        answer(used, &[call("t1", "echo again")]);
        tool_result("t1");
        let is_stopped = self.is_stopped_after_batch(None);
        if is_stopped {
            stopped();
        }
        is_stopped
    }

    /// A tool that never ends, until the turn is interrupted.
    fn hang(&mut self) {
        answer(5000, &[text("I begin."), call("t1", "sleep infinity")]);
        fs::write("at-work", "").expect("the tree can be written");
        while let Some(line) = self.0.hear() {
            if line["request"]["subtype"] == "interrupt" {
                respond(&line, &json!({ "still_queued": [] }));
                return end(&json!({
                    "subtype": "error_during_execution", "is_error": true,
                    "terminal_reason": "aborted_tools",
                }));
            }
        }
    }

    /// Calls the hook; returns whether the reply ends the turn.
    fn is_stopped_after_batch(&mut self, agent: Option<&str>) -> bool {
        let mut input = json!({ "hook_event_name": "PostToolBatch" });
        if let Some(agent) = agent {
            input["agent_id"] = agent.into();
        }
        let request = json!({ "subtype": "hook_callback", "callback_id": "batch", "input": input });
        send(&json!({ "type": "control_request", "request_id": "h1", "request": request }));
        let reply = self.0.hear().unwrap_or_default();
        reply.pointer("/response/response/continue") == Some(&Value::Bool(false))
    }
}

fn send(line: &Value) {
    println!("{line}");
}

fn respond(request: &Value, response: &Value) {
    let id = &request["request_id"];
    let response = json!({ "subtype": "success", "request_id": id, "response": response });
    send(&json!({ "type": "control_response", "response": response }));
}

/// One answer of the model: an event for each of its blocks.
fn answer(used: u64, blocks: &[Value]) {
    static NUMBER: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let id = NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    for block in blocks {
        let usage = json!({
            "input_tokens": 20, "cache_read_input_tokens": used - 20, "output_tokens": 1,
        });
        let message = json!({
            "id": format!("m{id}"), "model": "claude-x", "usage": usage, "content": [block],
        });
        send(&json!({ "type": "assistant", "message": message, "parent_tool_use_id": null }));
    }
}

fn text(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

fn call(id: &str, command: &str) -> Value {
    json!({ "type": "tool_use", "id": id, "name": "Bash", "input": { "command": command } })
}

fn tool_result(id: &str) {
    let result = json!({ "type": "tool_result", "tool_use_id": id, "content": "done" });
    send(&json!({ "type": "user", "message": { "role": "user", "content": [result] } }));
}

fn stopped() {
    end(&json!({ "subtype": "success", "is_error": false, "terminal_reason": "hook_stopped" }));
}

fn end(result: &Value) {
    let mut result = result.clone();
    result["type"] = "result".into();
    send(&result);
}
