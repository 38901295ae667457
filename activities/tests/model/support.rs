//! A project with a key, a scripted model server, and calls of the handler.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use longhaul_activities::git::GitHandlers;
use longhaul_activities::model::{Limiter, ModelEvent, ModelHandler};
use longhaul_engine::{Attempt, Failure, Handler, Payload, Probe, RunId, Slot, Worker};
use longhaul_model_server::{ModelServer, Options, Outcome, Reply, Request};
use longhaul_workflows::contracts::{Block, Message, ModelAnswer, ModelCall, ProjectRef, ToolSpec};
use longhaul_workflows::settings::{ApiSettings, EnvSource, Protocol};
use tempfile::TempDir;
use tokio::sync::watch;

/// The key of the provider.
pub(crate) const KEY: &str = "sk-Zq7-planted-9vX2bLw4TzKd8";

pub(crate) const PROTOCOLS: [Protocol; 2] = [Protocol::Anthropic, Protocol::Openai];

/// The limit for an event that a test waits for.
pub(crate) const LIMIT: Duration = Duration::from_secs(30);

/// A data directory, a checkout with a key, and a server.
pub(crate) struct World {
    folder: TempDir,
    server: Arc<ModelServer>,
}

impl World {
    pub(crate) fn new(
        options: Options,
        script: impl Fn(&Request) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for inside in ["data", "root"] {
            std::fs::create_dir(folder.path().join(inside)).unwrap();
        }
        std::fs::write(folder.path().join("root/key"), format!("{KEY}\n")).unwrap();
        Self { folder, server: Arc::new(ModelServer::start(options, script).unwrap()) }
    }

    /// A world whose server gives the same reply to every request.
    pub(crate) fn replying(reply: impl Into<Reply>) -> Self {
        let reply = reply.into();
        Self::new(Options::default(), move |_| reply.clone())
    }

    pub(crate) fn server(&self) -> &ModelServer {
        &self.server
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// A new handler, as after a restart of the process.
    pub(crate) fn handler(&self) -> ModelHandler {
        ModelHandler::new(self.data(), GitHandlers::new(self.data()), Limiter::new(&self.data()))
    }

    /// A call that begins a conversation.
    pub(crate) fn call(&self, protocol: Protocol) -> ModelCall {
        let root = self.folder.path().join("root").to_str().unwrap().to_owned();
        ModelCall {
            project: ProjectRef { id: "shop".into(), root },
            api: ApiSettings { protocol, url: Some(self.server.url()), ..ApiSettings::default() },
            key: Some(EnvSource::File("key".into())),
            model: "scripted-1".into(),
            window: 200_000,
            head: None,
            new: vec![start(), user("Begin.")],
        }
    }

    pub(crate) async fn perform(&self, call: ModelCall, slot: u32) -> Result<ModelAnswer, Failure> {
        self.handler().perform(call, &attempt(slot)).await
    }

    pub(crate) async fn probe(&self, call: ModelCall, slot: u32) -> Probe<ModelAnswer> {
        self.handler().probe(call, &attempt(slot)).await
    }

    /// Waits until this number of requests has this outcome.
    pub(crate) async fn wait_for(&self, outcome: Outcome, count: usize) {
        let server = Arc::clone(&self.server);
        let has = move || {
            server.wait_for(LIMIT, |records| {
                records.iter().filter(|record| record.outcome == outcome).count() >= count
            })
        };
        assert!(tokio::task::spawn_blocking(has).await.unwrap(), "{count} requests {outcome:?}");
    }
}

pub(crate) fn start() -> Message {
    let tool = ToolSpec {
        name: "shell".into(),
        description: "Runs a command.".into(),
        schema: r#"{"type":"object","properties":{"command":{"type":"string"}}}"#.into(),
        mcp: None,
    };
    Message::Start { system: "You write code.".into(), tools: vec![tool] }
}

pub(crate) fn user(text: &str) -> Message {
    Message::User { blocks: vec![Block::Text { text: text.into() }] }
}

/// The results of tools, for the calls of an answer.
pub(crate) fn results(answer: &ModelAnswer, text: &str) -> Message {
    let result = |block: &Block| match block {
        Block::ToolUse(call) => {
            Some(Block::ToolResult { id: call.id.clone(), text: text.into(), is_error: false })
        }
        _ => None,
    };
    Message::User { blocks: answer.blocks.iter().filter_map(result).collect() }
}

/// The call that continues a conversation.
pub(crate) fn next(call: &ModelCall, answer: &ModelAnswer, new: Message) -> ModelCall {
    ModelCall { head: Some(answer.head.clone()), new: vec![new], ..call.clone() }
}

pub(crate) fn attempt(slot: u32) -> Attempt {
    Attempt::detached(RunId::new("shop/login").unwrap(), Slot::only(slot))
}

/// A worker that keeps live events and can be cancelled.
pub(crate) struct Observer {
    events: Mutex<Vec<ModelEvent>>,
    cancelled: watch::Sender<bool>,
}

impl Observer {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { events: Mutex::default(), cancelled: watch::Sender::new(false) })
    }

    pub(crate) fn attempt(self: &Arc<Self>, slot: u32) -> Attempt {
        Attempt { worker: self.clone(), ..attempt(slot) }
    }

    pub(crate) fn cancel(&self) {
        self.cancelled.send_replace(true);
    }

    /// The text of all events, in order; `[name]` for the call of a tool.
    pub(crate) fn text(&self) -> String {
        let events = self.events.lock().unwrap();
        let text = |event: &ModelEvent| match event {
            ModelEvent::Text { text } | ModelEvent::Thinking { text } => text.clone(),
            ModelEvent::Tool { name } => format!("[{name}]"),
        };
        events.iter().map(text).collect()
    }
}

#[async_trait]
impl Worker for Observer {
    fn heartbeat(&self) {}

    fn record_progress(&self, _details: Payload) {}

    fn emit(&self, event: Payload) {
        self.events.lock().unwrap().push(event.read().unwrap());
    }

    fn is_cancelled(&self) -> bool {
        *self.cancelled.borrow()
    }

    async fn cancelled(&self) {
        self.cancelled.subscribe().wait_for(|cancelled| *cancelled).await.unwrap();
    }
}
