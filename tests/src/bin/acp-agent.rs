//! An agent that speaks the Agent Client Protocol and works by a script:
//! `acp-agent DIRECTORY SCENARIO`. It writes the requests that it gets to DIRECTORY/requests, and
//! waits while DIRECTORY/held exists.

use std::process::exit;

use longhaul_tests::player::Player;
use serde_json::{Value, json};

const SESSION: &str = "scripted-1";

fn main() {
    let mut agent = Agent(Player::of_this_process());
    while let Some(request) = agent.0.hear() {
        agent.answer(&request);
    }
}

struct Agent(Player);

impl Agent {
    fn is(&self, scenario: &str) -> bool {
        self.0.scenario() == scenario
    }

    fn answer(&mut self, request: &Value) {
        let result = match request["method"].as_str().unwrap_or_default() {
            "initialize" => json!({
                "protocolVersion": if self.is("version") { 2 } else { 1 },
                "agentCapabilities": {
                    "loadSession": !self.is("resumes") && !self.is("forgets"),
                    "sessionCapabilities": if self.is("resumes") { json!({ "resume": {} }) } else { json!({}) },
                },
                "agentInfo": { "name": "scripted", "version": "0.3" },
            }),
            "session/new" => json!({
                "sessionId": SESSION,
                "configOptions": [{ "id": "model", "category": "model", "currentValue": "small" }],
            }),
            "session/load" => {
                // The history comes again.
                say("I begin.");
                update(
                    &json!({ "sessionUpdate": "usage_update", "used": 10, "size": 1000, "cost": usd(0.5) }),
                );
                json!({})
            }
            "session/prompt" => return self.work(&request["id"]),
            _ => json!({}),
        };
        send(&json!({ "id": request["id"], "result": result }));
    }

    fn work(&mut self, id: &Value) {
        println!("a line of a log");
        say("I begin.");
        match self.0.scenario() {
            "refused" => {
                self.call("c1", "fetch", "https://example.com");
                return stop(id, "end_turn");
            }
            "limited" if self.0.file("limited").exists() => {
                let data = json!({ "errorKind": "rate_limit", "retryAfter": 3600 });
                return fail(id, "Internal error: 429, slow down", &data);
            }
            "login" => {
                return send(
                    &json!({ "id": id, "error": { "code": -32000, "message": "Authentication required" } }),
                );
            }
            "full" if self.0.is_to_fill() => return self.fill(id),
            "unknown" => return stop(id, "tired"),
            "crash" => exit(3),
            _ => {}
        }
        if self.call("c1", "execute", "echo finished") {
            self.0.work();
        }
        update(
            &json!({ "sessionUpdate": "usage_update", "used": 400, "size": 1000, "cost": usd(0.75) }),
        );
        say("It is ");
        say("written.");
        stop(id, "end_turn");
    }

    /// Asks for a tool call and reports it; returns whether it was allowed.
    fn call(&mut self, id: &str, kind: &str, title: &str) -> bool {
        let call = json!({ "toolCallId": id, "title": title, "kind": kind, "status": "pending" });
        let mut begun = call.clone();
        begun["sessionUpdate"] = "tool_call".into();
        update(&begun);
        let options = json!([
            { "optionId": "always", "name": "Always", "kind": "allow_always" },
            { "optionId": "yes", "name": "Yes", "kind": "allow_once" },
            { "optionId": "no", "name": "No", "kind": "reject_once" },
        ]);
        let params = json!({ "sessionId": SESSION, "toolCall": call, "options": options });
        send(&json!({ "id": "p1", "method": "session/request_permission", "params": params }));
        let answer = self.0.hear().unwrap_or_default();
        let is_allowed = answer.pointer("/result/outcome/optionId") == Some(&json!("yes"));
        let status = if is_allowed { "completed" } else { "failed" };
        let text = json!({ "type": "text", "text": "done" });
        let content = json!([{ "type": "content", "content": text }]);
        update(&json!({
            "sessionUpdate": "tool_call_update", "toolCallId": id, "status": status, "content": content,
        }));
        is_allowed
    }

    /// Fills the window, and works on until the turn is cancelled.
    fn fill(&mut self, id: &Value) {
        update(&json!({ "sessionUpdate": "usage_update", "used": 950, "size": 1000 }));
        while let Some(message) = self.0.hear() {
            if message["method"] == "session/cancel" {
                return stop(id, "cancelled");
            }
        }
    }
}

fn send(message: &Value) {
    let mut message = message.clone();
    message["jsonrpc"] = "2.0".into();
    println!("{message}");
}

fn update(update: &Value) {
    let params = json!({ "sessionId": SESSION, "update": update });
    send(&json!({ "method": "session/update", "params": params }));
}

fn say(text: &str) {
    let content = json!({ "type": "text", "text": text });
    update(&json!({ "sessionUpdate": "agent_message_chunk", "content": content }));
}

fn usd(amount: f64) -> Value {
    json!({ "amount": amount, "currency": "USD" })
}

fn stop(id: &Value, reason: &str) {
    let usage = json!({ "inputTokens": 30, "outputTokens": 7, "cachedReadTokens": 5 });
    send(&json!({ "id": id, "result": { "stopReason": reason, "usage": usage } }));
}

fn fail(id: &Value, message: &str, data: &Value) {
    send(&json!({ "id": id, "error": { "code": -32603, "message": message, "data": data } }));
}
