//! An agent that speaks as the app-server of Codex does, and works by a script:
//! `codex-agent DIRECTORY SCENARIO`. It writes the lines that it gets to DIRECTORY/requests, and
//! waits while DIRECTORY/held exists.

use longhaul_tests::player::Player;
use serde_json::{Value, json};

const THREAD: &str = "scripted-1";

fn main() {
    if std::env::args().any(|arg| arg == "--version") {
        println!("codex-cli 0.169.0");
        return;
    }
    let mut agent = Agent(Player::of_this_process());
    while let Some(request) = agent.0.hear() {
        let opened = json!({ "thread": { "id": THREAD }, "model": "codex-x" });
        match request["method"].as_str().unwrap_or_default() {
            "initialized" => {}
            "thread/resume" if agent.0.scenario() == "forgets" => {
                let error = json!({ "code": -32600, "message": "no rollout found" });
                send(&json!({ "id": request["id"], "error": error }));
            }
            "thread/start" | "thread/resume" => reply(&request, &opened),
            "turn/start" => {
                reply(&request, &json!({ "turn": { "id": "turn-1" } }));
                agent.work();
            }
            _ => reply(&request, &json!({})),
        }
    }
}

struct Agent(Player);

impl Agent {
    fn work(&mut self) {
        let item = |text: &str| json!({ "type": "agentMessage", "id": "m", "text": text });
        notify("item/completed", json!({ "item": item("I begin.") }));
        if self.0.is_to_fill() {
            return self.fill();
        }
        let mut command = json!({
            "type": "commandExecution", "id": "c", "command": "echo finished",
            "status": "inProgress",
        });
        notify("item/started", json!({ "item": command }));
        self.0.work();
        command["status"] = "completed".into();
        notify("item/completed", json!({ "item": command }));
        used(400);
        notify("item/completed", json!({ "item": item("It is written.") }));
        end("completed");
    }

    /// Fills the window, and works on until the turn is interrupted.
    fn fill(&mut self) {
        used(950);
        while let Some(message) = self.0.hear() {
            if message["method"] == "turn/interrupt" {
                reply(&message, &json!({}));
                return end("interrupted");
            }
        }
    }
}

fn send(message: &Value) {
    println!("{message}");
}

fn reply(request: &Value, result: &Value) {
    send(&json!({ "id": request["id"], "result": result }));
}

fn notify(method: &str, mut params: Value) {
    params["threadId"] = THREAD.into();
    send(&json!({ "method": method, "params": params }));
}

fn used(tokens: u64) {
    let total = json!({ "inputTokens": tokens, "cachedInputTokens": 5, "outputTokens": 7 });
    let usage = json!({
        "total": total, "last": { "totalTokens": tokens }, "modelContextWindow": 1000,
    });
    notify("thread/tokenUsage/updated", json!({ "tokenUsage": usage }));
}

fn end(status: &str) {
    notify("turn/completed", json!({ "turn": { "id": "turn-1", "status": status } }));
}
