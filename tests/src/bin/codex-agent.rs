//! An agent that speaks as the app-server of Codex does, and works by a script:
//! `codex-agent DIRECTORY SCENARIO`. It writes the lines that it gets to DIRECTORY/requests, and
//! waits while DIRECTORY/held exists.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::thread::sleep;
use std::time::Duration;

use serde_json::{Value, json};

const THREAD: &str = "scripted-1";

fn main() {
    if std::env::args().any(|arg| arg == "--version") {
        println!("codex-cli 0.169.0");
        return;
    }
    let mut args = std::env::args().skip(1);
    let directory = PathBuf::from(args.next().unwrap_or_default());
    let scenario = args.next().unwrap_or_default();
    let mut agent = Agent { directory, scenario, lines: io::stdin().lines() };
    while let Some(request) = agent.next() {
        let opened = json!({ "thread": { "id": THREAD }, "model": "codex-x" });
        match request["method"].as_str().unwrap_or_default() {
            "initialized" => {}
            "thread/resume" if agent.scenario == "forgets" => {
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

struct Agent {
    directory: PathBuf,
    scenario: String,
    lines: io::Lines<io::StdinLock<'static>>,
}

impl Agent {
    /// The next message; `None` at the end of the input.
    fn next(&mut self) -> Option<Value> {
        let line = self.lines.next()?.ok()?;
        let requests = self.directory.join("requests");
        let mut file = OpenOptions::new().create(true).append(true).open(requests).ok()?;
        writeln!(file, "{line}").ok()?;
        serde_json::from_str(&line).ok()
    }

    fn work(&mut self) {
        let item = |text: &str| json!({ "type": "agentMessage", "id": "m", "text": text });
        notify("item/completed", json!({ "item": item("I begin.") }));
        let was_full = self.directory.join("was-full");
        if self.scenario == "full" && !was_full.exists() {
            fs::write(was_full, "").expect("it can be written");
            return self.fill();
        }
        let mut command = json!({
            "type": "commandExecution", "id": "c", "command": "echo finished",
            "status": "inProgress",
        });
        notify("item/started", json!({ "item": command }));
        fs::write("at-work", "").expect("the tree can be written");
        while self.directory.join("held").exists() {
            sleep(Duration::from_millis(20));
        }
        let feature = std::env::var("LONGHAUL_FEATURE_ID").unwrap_or_default();
        fs::write(format!("{feature}.txt"), "finished\n").expect("the tree can be written");
        command["status"] = "completed".into();
        notify("item/completed", json!({ "item": command }));
        used(400);
        notify("item/completed", json!({ "item": item("It is written.") }));
        end("completed");
    }

    /// Fills the window, and works on until the turn is interrupted.
    fn fill(&mut self) {
        used(950);
        while let Some(message) = self.next() {
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
