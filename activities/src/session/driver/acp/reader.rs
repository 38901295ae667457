//! The conversation with an agent: requests in order, and the meaning of its lines.

use longhaul_workflows::contracts::AgentOutcome;
use serde_json::{Value, json};

use super::super::event::{number, text};
use super::super::opencode::{failed_request, is_for_title};
use super::super::{AgentEvent, Dialogue, End, Reader};
use super::update::{Tools, Turn};
use super::{end, servers};

/// The version of the protocol.
const VERSION: u64 = 1;

/// The requests, by id.
const INITIALIZE: u64 = 1;
const SESSION: u64 = 2;
const PROMPT: u64 = 3;
const LOGIN: u64 = 4;
const MODEL: u64 = 5;

/// How far the exchange is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// No answer was read: the begin, or the end of a log alone.
    Unknown,
    /// A conversation is opened. Updates repeat an earlier one.
    Opening,
    Talking,
    Ended,
}

/// Reads the lines of an agent; with a dialogue it also answers them.
#[derive(Debug)]
pub(super) struct AcpReader {
    pub(super) dialogue: Option<Dialogue>,
    /// The lines to send.
    replies: Vec<String>,
    session: String,
    version: Option<String>,
    model: Option<String>,
    stage: Stage,
    pub(super) turn: Turn,
    pub(super) tools: Tools,
    /// Whether the turn is to be cancelled between two actions.
    is_stopping: bool,
}

/// The first request.
pub(in crate::session::driver) fn initialize() -> String {
    let none = json!({ "readTextFile": false, "writeTextFile": false });
    let params = json!({
        "protocolVersion": VERSION,
        "clientCapabilities": { "fs": none, "terminal": false },
        "clientInfo": { "name": "longhaul", "version": env!("CARGO_PKG_VERSION") },
    });
    request(INITIALIZE, "initialize", &params).to_string() + "\n"
}

fn request(id: u64, method: &str, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

/// The answer to the first request.
pub(in crate::session::driver) enum Answer {
    /// The version of the agent, if it states one.
    Version(Option<String>),
    /// The agent speaks another version of the protocol.
    Refused,
}

impl Answer {
    /// The answer in a line; `None`: the line is something else.
    pub(in crate::session::driver) fn of(line: &str) -> Option<Self> {
        let message: Value = serde_json::from_str(line).ok()?;
        let result = message.get("result").filter(|_| message["id"] == INITIALIZE)?;
        if number(result, "/protocolVersion") != VERSION {
            return Some(Self::Refused);
        }
        let version = text(result, "/agentInfo/version");
        Some(Self::Version(Some(version).filter(|version| !version.is_empty())))
    }
}

impl AcpReader {
    pub(super) fn new(dialogue: Option<Dialogue>) -> Self {
        let replies = if dialogue.is_some() { vec![initialize()] } else { Vec::new() };
        Self {
            dialogue,
            replies,
            session: String::new(),
            version: None,
            model: None,
            stage: Stage::Unknown,
            turn: Turn::default(),
            tools: Tools::default(),
            is_stopping: false,
        }
    }

    #[expect(clippy::needless_pass_by_value, reason = "a message is made for one line")]
    pub(super) fn send(&mut self, message: Value) {
        if self.dialogue.is_some() {
            self.replies.push(message.to_string() + "\n");
        }
    }

    #[expect(clippy::needless_pass_by_value, reason = "parameters are made for one request")]
    fn request(&mut self, id: u64, method: &str, params: Value) {
        self.send(request(id, method, &params));
    }

    fn answered(&mut self, id: u64, result: &Value) -> Vec<AgentEvent> {
        match id {
            INITIALIZE => self.initialized(result),
            LOGIN => self.open(),
            SESSION => self.opened(result),
            MODEL => self.prompt(),
            PROMPT => self.finished(result),
            _ => Vec::new(),
        }
    }

    fn initialized(&mut self, result: &Value) -> Vec<AgentEvent> {
        self.stage = Stage::Opening;
        let version = number(result, "/protocolVersion");
        if version != VERSION {
            let message = format!("the agent speaks version {version} of the protocol, not 1");
            return self.ended(End::new(AgentOutcome::Protocol, message));
        }
        self.version = Some(text(result, "/agentInfo/version")).filter(|it| !it.is_empty());
        let can = |pointer: &str| result.pointer(pointer).is_some_and(|it| !it.is_null());
        self.tools.resume = match () {
            () if can("/agentCapabilities/sessionCapabilities/resume") => Some("session/resume"),
            () if result.pointer("/agentCapabilities/loadSession") == Some(&Value::Bool(true)) => {
                Some("session/load")
            }
            () => None,
        };
        self.tools.takes_http =
            result.pointer("/agentCapabilities/mcpCapabilities/http") == Some(&Value::Bool(true));
        let login = self.dialogue.as_ref().and_then(|it| it.agent.acp.login.clone());
        match login {
            Some(method) => {
                self.request(LOGIN, "authenticate", json!({ "methodId": method }));
                Vec::new()
            }
            None => self.open(),
        }
    }

    /// Asks for a new conversation, or for the earlier one.
    fn open(&mut self) -> Vec<AgentEvent> {
        let Some(dialogue) = &self.dialogue else { return Vec::new() };
        let servers = match servers(&dialogue.agent, &dialogue.root, self.tools.takes_http) {
            Ok(servers) => servers,
            Err(message) => return self.ended(End::new(AgentOutcome::Protocol, message)),
        };
        let mut params = json!({ "cwd": dialogue.folder, "mcpServers": servers });
        match (&dialogue.resumed, self.tools.resume) {
            (None, _) => self.request(SESSION, "session/new", params),
            (Some(id), Some(method)) => {
                params["sessionId"] = id.clone().into();
                self.request(SESSION, method, params);
            }
            (Some(_), None) => {
                let message = "the agent cannot resume a conversation";
                return self.ended(End::new(AgentOutcome::Protocol, message));
            }
        }
        Vec::new()
    }

    fn opened(&mut self, result: &Value) -> Vec<AgentEvent> {
        let known = self.dialogue.as_ref().and_then(|dialogue| dialogue.resumed.clone());
        let stated = text(result, "/sessionId");
        self.session = if stated.is_empty() { known.unwrap_or_default() } else { stated };
        self.stage = Stage::Talking;
        let options = result["configOptions"].as_array().into_iter().flatten();
        let option = options.clone().find(|it| it["category"] == "model" || it["id"] == "model");
        let current = option.map_or_else(
            || text(result, "/models/currentModelId"),
            |option| text(option, "/currentValue"),
        );
        self.model = Some(current).filter(|model| !model.is_empty());
        let wanted = self.dialogue.as_ref().and_then(|dialogue| dialogue.agent.model.clone());
        let wanted = wanted.filter(|wanted| Some(wanted) != self.model.as_ref());
        let Some(wanted) = wanted else { return self.prompt() };
        let session = &self.session;
        let (method, params) = match option {
            Some(option) => (
                "session/set_config_option",
                json!({ "sessionId": session, "configId": option["id"], "value": wanted }),
            ),
            None => ("session/set_model", json!({ "sessionId": session, "modelId": wanted })),
        };
        self.request(MODEL, method, params);
        self.model = Some(wanted);
        Vec::new()
    }

    fn prompt(&mut self) -> Vec<AgentEvent> {
        if let Some(dialogue) = &self.dialogue {
            let prompt = json!([{ "type": "text", "text": dialogue.prompt }]);
            let params = json!({ "sessionId": self.session, "prompt": prompt });
            self.request(PROMPT, "session/prompt", params);
        }
        let conversation = self.session.clone();
        let version = self.version.clone();
        let model = self.model.clone();
        vec![AgentEvent::Began { conversation, version, model }]
    }

    fn finished(&mut self, result: &Value) -> Vec<AgentEvent> {
        let mut events = self.turn.message();
        if let Some(usage) = end::usage(result) {
            events.push(self.turn.used(usage));
        }
        let end = end::of_stop(&text(result, "/stopReason"), &self.turn);
        events.extend(self.ended(end));
        events
    }

    fn failed(&mut self, id: u64, error: &Value) -> Vec<AgentEvent> {
        let mut events = self.turn.message();
        let mut end = end::of_error(error);
        if id == MODEL {
            end.message = format!("the model cannot be set: {}", end.message);
        }
        events.extend(self.ended(end));
        events
    }

    fn ended(&mut self, end: End) -> Vec<AgentEvent> {
        self.stage = Stage::Ended;
        vec![AgentEvent::Ended(end)]
    }

    fn updated(&mut self, params: &Value) -> Vec<AgentEvent> {
        // A log may lack the id.
        if !self.session.is_empty() && params["sessionId"] != self.session.as_str() {
            return Vec::new();
        }
        let update = &params["update"];
        let mut events = self.turn.update(update);
        events.extend(self.tools.update(update, &mut self.turn));
        events
    }

    /// Cancels the turn once it is to end and no tool is at work.
    fn cancel_at_boundary(&mut self) {
        if self.is_stopping && self.stage == Stage::Talking && !self.tools.are_open() {
            self.is_stopping = false;
            self.replies.extend(self.cancel());
        }
    }
}

impl Reader for AcpReader {
    fn line(&mut self, line: &str) -> Vec<AgentEvent> {
        let Some(message) = serde_json::from_str::<Value>(line).ok().filter(Value::is_object)
        else {
            // opencode repeats a failed request for ever, and only its log says so.
            return match failed_request(line).filter(|_| !is_for_title(line)) {
                Some(end) => vec![AgentEvent::Retrying(end)],
                None => vec![AgentEvent::Note(line.to_owned())],
            };
        };
        if self.stage == Stage::Ended {
            return Vec::new();
        }
        let method = text(&message, "/method");
        let events = match (message.get("id"), method.as_str()) {
            (Some(id), "") => {
                let id = id.as_u64().unwrap_or_default();
                match (message.get("result"), message.get("error")) {
                    (_, Some(error)) if !error.is_null() => self.failed(id, error),
                    (Some(result), _) => self.answered(id, result),
                    (None, _) => {
                        let message = "an answer has neither a result nor an error";
                        self.ended(End::new(AgentOutcome::Protocol, message))
                    }
                }
            }
            (Some(id), method) => self.asked(id, method, &message["params"]),
            (None, "session/update") if self.stage != Stage::Opening => {
                self.updated(&message["params"])
            }
            (None, "session/update") => {
                self.turn.before(&message["params"]["update"]);
                Vec::new()
            }
            (None, _) => Vec::new(),
        };
        self.cancel_at_boundary();
        events
    }

    fn replies(&mut self) -> Vec<String> {
        std::mem::take(&mut self.replies)
    }

    fn stop_at_boundary(&mut self) {
        self.is_stopping = true;
        self.cancel_at_boundary();
    }

    fn cancel(&self) -> Option<String> {
        let params = json!({ "sessionId": self.session });
        let message = json!({ "jsonrpc": "2.0", "method": "session/cancel", "params": params });
        (self.stage == Stage::Talking).then(|| message.to_string() + "\n")
    }
}
