//! The requests to the app-server: a thread, one turn in it, and the end of that.

use serde_json::{Value, json};

use super::super::{Dialogue, Line};

/// The requests, by id.
pub(super) const INITIALIZE: u64 = 1;
pub(super) const THREAD: u64 = 2;
pub(super) const TURN: u64 = 3;
const INTERRUPT: u64 = 4;

/// The code of a method that is not offered.
const NO_METHOD: i64 = -32601;

/// The sandbox of Codex that the settings choose. The app-server has no such option.
#[derive(Debug)]
pub(super) struct Sandbox {
    pub(super) mode: String,
    /// The other arguments.
    pub(super) rest: Vec<String>,
}

impl Sandbox {
    pub(super) fn of(args: &[String]) -> Self {
        let mut found = Self { mode: "workspace-write".into(), rest: Vec::new() };
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            match arg.split_once('=') {
                None if ["--sandbox", "-s"].contains(&arg.as_str()) => {
                    found.mode = args.next().cloned().unwrap_or_default();
                }
                Some(("--sandbox" | "-s", mode)) => found.mode = mode.into(),
                _ => found.rest.push(arg.clone()),
            }
        }
        found
    }

    /// Whether Codex starts no sandbox of its own.
    pub(super) fn is_off(&self) -> bool {
        self.mode == "danger-full-access"
    }
}

/// The side of Longhaul.
#[derive(Debug)]
pub(super) struct Requests {
    prompt: String,
    resumed: Option<String>,
    thread_params: Value,
    lines: Vec<Line>,
    thread: String,
    /// The turn at work.
    turn: Option<String>,
    /// Whether the turn is to end between two actions.
    is_stopping: bool,
}

impl Requests {
    pub(super) fn new(dialogue: &Dialogue) -> Self {
        let mut params = json!({
            "cwd": dialogue.folder,
            "approvalPolicy": "never",
            "sandbox": Sandbox::of(&dialogue.agent.args).mode,
        });
        if let Some(model) = &dialogue.agent.model {
            params["model"] = model.clone().into();
        }
        let client = json!({
            "name": "longhaul", "title": "Longhaul", "version": env!("CARGO_PKG_VERSION"),
        });
        let mut requests = Self {
            prompt: dialogue.prompt.clone(),
            resumed: dialogue.resumed.clone(),
            thread_params: params,
            lines: Vec::new(),
            thread: String::new(),
            turn: None,
            is_stopping: false,
        };
        requests.request(INITIALIZE, "initialize", &json!({ "clientInfo": client }));
        requests
    }

    pub(super) fn initialized(&mut self) {
        self.send(&json!({ "method": "initialized" }));
        let mut params = std::mem::take(&mut self.thread_params);
        match self.resumed.take() {
            Some(thread) => {
                params["threadId"] = thread.into();
                params["excludeTurns"] = true.into();
                self.request(THREAD, "thread/resume", &params);
            }
            None => self.request(THREAD, "thread/start", &params),
        }
    }

    pub(super) fn thread_opened(&mut self, thread: &str) {
        thread.clone_into(&mut self.thread);
        let input = json!([{ "type": "text", "text": self.prompt }]);
        self.request(TURN, "turn/start", &json!({ "threadId": thread, "input": input }));
    }

    pub(super) fn turn_started(&mut self, turn: &str) {
        self.turn = Some(turn.to_owned());
        if self.is_stopping {
            self.lines.extend(self.interrupt());
        }
    }

    /// Ends the turn now: the app-server states the usage when the tools of an answer have ended,
    /// and before it asks the model again.
    pub(super) fn stop_at_boundary(&mut self) {
        self.is_stopping = true;
        self.lines.extend(self.interrupt());
    }

    pub(super) fn interrupt(&self) -> Option<Line> {
        let turn = self.turn.as_ref()?;
        let params = json!({ "threadId": self.thread, "turnId": turn });
        Some(line(&json!({ "id": INTERRUPT, "method": "turn/interrupt", "params": params })))
    }

    /// Refuses a request of the agent: no person could answer it.
    pub(super) fn refuse(&mut self, id: &Value, method: &str) {
        let error = json!({ "code": NO_METHOD, "message": format!("no method {method}") });
        self.send(&json!({ "id": id, "error": error }));
    }

    pub(super) fn take_lines(&mut self) -> Vec<Line> {
        std::mem::take(&mut self.lines)
    }

    fn request(&mut self, id: u64, method: &str, params: &Value) {
        self.send(&json!({ "id": id, "method": method, "params": params }));
    }

    fn send(&mut self, message: &Value) {
        self.lines.push(line(message));
    }
}

fn line(message: &Value) -> Line {
    message.to_string() + "\n"
}
