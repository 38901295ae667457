//! The lines that drivers send to an agent.

use longhaul_workflows::resources::Resources;
use longhaul_workflows::settings::AgentSettings;
use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedReceiver;

use super::*;

/// A dialogue with an agent whose session may use 1000 tokens.
struct Talk<'a> {
    record: Record<'a>,
    lines: UnboundedReceiver<Line>,
}

impl<'a> Talk<'a> {
    fn new(driver: &str, args: &[&str], saved: &'a mut Vec<String>) -> Self {
        let mut record = record(driver, saved);
        let args = args.iter().map(|arg| (*arg).to_owned()).collect();
        let agent = AgentSettings { args, ..AgentSettings::default() };
        let lots = Resources { turns: 99, tokens: 1000, cost_micros: 99, time_ms: u64::MAX };
        let lines = record.speak(Dialogue {
            prompt: "the task".into(),
            folder: "/tree".into(),
            root: "/root".into(),
            resumed: None,
            agent,
            available: Some(lots),
        });
        Self { record, lines: lines.unwrap() }
    }

    /// The agent prints a line; returns the answers.
    #[expect(clippy::needless_pass_by_value, reason = "a message is made for one line")]
    fn hears(&mut self, message: Value) -> Vec<Value> {
        self.record.take(format!("{message}\n").as_bytes());
        self.said()
    }

    fn said(&mut self) -> Vec<Value> {
        std::iter::from_fn(|| self.lines.try_recv().ok())
            .map(|line| serde_json::from_str(&line).unwrap())
            .collect()
    }

    fn end(mut self) -> End {
        self.record.end(&finished(Some(0), None))
    }
}

/// A dialogue with Claude Code until its prompt, with a window of 1000 tokens.
fn claude(saved: &mut Vec<String>) -> Talk<'_> {
    let mut talk = Talk::new("claude", &[], saved);
    let first = talk.said();
    assert_eq!(first[0]["request"]["subtype"], "initialize");
    let stated = json!({ "claude_code_version": "2.1.330" });
    let asked = talk.hears(response("initialize", &stated));
    assert_eq!(asked[0]["request"]["subtype"], "get_context_usage");
    let prompt = talk.hears(response("context", &json!({ "maxTokens": 1000 })));
    assert_eq!(prompt[0]["message"]["content"][0]["text"], "the task");
    talk
}

fn response(id: &str, response: &Value) -> Value {
    let response = json!({ "subtype": "success", "request_id": id, "response": response });
    json!({ "type": "control_response", "response": response })
}

fn answer(tokens: u64, parent: Option<&str>, text: &str) -> Value {
    let usage = json!({ "cache_read_input_tokens": tokens, "output_tokens": 1 });
    let content = json!([{ "type": "text", "text": text }]);
    let message = json!({ "id": format!("m{tokens}"), "usage": usage, "content": content });
    json!({ "type": "assistant", "message": message, "parent_tool_use_id": parent })
}

fn hook() -> Value {
    let input = json!({ "hook_event_name": "PostToolBatch" });
    let request = json!({ "subtype": "hook_callback", "callback_id": "batch", "input": input });
    json!({ "type": "control_request", "request_id": "h", "request": request })
}

/// Whether the agent goes on after its tools.
fn goes_on(talk: &mut Talk<'_>) -> bool {
    let reply = talk.hears(hook())[0]["response"]["response"].clone();
    assert!(reply == json!({}) || reply["continue"] == false, "{reply}");
    reply == json!({})
}

#[test]
fn claude_goes_on_until_its_own_window_is_nearly_full() {
    let mut saved = Vec::new();
    let mut talk = claude(&mut saved);
    talk.hears(answer(890, None, ""));
    assert!(goes_on(&mut talk));
    // The window of a sub-agent is another one.
    talk.hears(answer(990, Some("t1"), ""));
    assert!(goes_on(&mut talk));
    // An answer counts with its length.
    talk.hears(answer(880, None, &"word ".repeat(20)));
    assert!(!goes_on(&mut talk));
    talk.hears(json!({
        "type": "result", "subtype": "success", "is_error": false,
        "terminal_reason": "hook_stopped",
    }));
    let end = talk.end();
    let message = "stopped between two actions, because the window is nearly full";
    assert_eq!((end.outcome, end.message.as_str()), (AgentOutcome::StoppedAtBoundary, message));
}

#[test]
fn claude_gets_an_error_for_a_request_that_longhaul_cannot_answer() {
    let mut saved = Vec::new();
    let mut talk = claude(&mut saved);
    let request = json!({ "subtype": "can_use_tool", "tool_name": "Bash" });
    let message = json!({ "type": "control_request", "request_id": "p", "request": request });
    assert_eq!(talk.hears(message)[0]["response"]["subtype"], "error");
}

#[test]
fn claude_with_commands_in_the_background_may_go_on_after_its_turn() {
    let done = json!({ "type": "result", "subtype": "success", "is_error": false });
    for (tasks, lingers) in [(json!([]), true), (json!([{ "task_id": "b" }]), false)] {
        let mut saved = Vec::new();
        let mut talk = claude(&mut saved);
        talk.hears(json!({
            "type": "system", "subtype": "background_tasks_changed", "tasks": tasks,
        }));
        talk.hears(done.clone());
        let patience = talk.record.gives_up_at().unwrap() - tokio::time::Instant::now();
        assert_eq!(patience < Duration::from_mins(1), lingers, "{tasks}");
    }
}

/// A dialogue with Codex until its turn.
fn codex<'a>(args: &[&str], sandbox: &str, saved: &'a mut Vec<String>) -> Talk<'a> {
    let mut talk = Talk::new("codex", args, saved);
    assert_eq!(talk.said()[0]["method"], "initialize");
    let opened = talk.hears(json!({ "id": 1, "result": {} }));
    assert_eq!(opened[0]["method"], "initialized");
    let params = &opened[1]["params"];
    assert_eq!((&params["sandbox"], &params["approvalPolicy"]), (&json!(sandbox), &json!("never")));
    let begun = talk.hears(json!({ "id": 2, "result": { "thread": { "id": "th" } } }));
    assert_eq!(begun[0]["params"]["input"][0]["text"], "the task");
    talk
}

fn used(last: u64, total: u64) -> Value {
    let usage = json!({
        "total": { "inputTokens": total, "outputTokens": 1 },
        "last": { "totalTokens": last }, "modelContextWindow": 1000,
    });
    let params = json!({ "threadId": "th", "tokenUsage": usage });
    json!({ "method": "thread/tokenUsage/updated", "params": params })
}

fn ended(thread: &str, status: &str) -> Value {
    let turn = json!({ "id": "tu", "status": status });
    json!({ "method": "turn/completed", "params": { "threadId": thread, "turn": turn } })
}

#[test]
fn codex_is_interrupted_before_the_next_request() {
    let mut saved = Vec::new();
    let mut talk = codex(&["--sandbox=read-only"], "read-only", &mut saved);
    talk.hears(json!({ "id": 3, "result": { "turn": { "id": "tu" } } }));
    assert_eq!(talk.hears(used(400, 400)), Vec::<Value>::new());
    // A sub-agent ends.
    talk.hears(ended("another", "completed"));
    let said = talk.hears(used(950, 960));
    assert_eq!(
        (&said[0]["method"], &said[0]["params"]["turnId"]),
        (&json!("turn/interrupt"), &json!("tu"))
    );
    talk.hears(ended("th", "interrupted"));
    assert_eq!(talk.end().outcome, AgentOutcome::StoppedAtBoundary);
}

#[test]
fn a_spent_limit_of_tokens_ends_the_turn() {
    let mut saved = Vec::new();
    let mut talk = codex(&[], "workspace-write", &mut saved);
    // The usage of a resumed thread comes before the turn.
    assert_eq!(talk.hears(used(100, 1000)), Vec::<Value>::new());
    let said = talk.hears(json!({ "id": 3, "result": { "turn": { "id": "tu" } } }));
    assert_eq!(said[0]["method"], "turn/interrupt");
    talk.hears(ended("th", "interrupted"));
    let message = "stopped between two actions, because its limit of tokens is reached";
    assert_eq!(talk.end().message, message);
}

#[test]
fn a_request_of_codex_is_refused() {
    let mut saved = Vec::new();
    let mut talk = codex(&[], "workspace-write", &mut saved);
    let request = json!({ "id": "a", "method": "item/commandExecution/requestApproval" });
    assert_eq!(talk.hears(request)[0]["error"]["code"], -32601);
}
