//! The tools of the built-in agent: a shell in its sandbox, and the files of its work tree.
//!
//! A tool that fails is an answer. After each call the files of the tree are on stable storage, so
//! that a power cut takes back nothing that the conversation relies on. Calls that change a tree
//! run one at a time, and none reads meanwhile.

mod edit;
mod hook;
mod mcp;
mod read;
mod ready;
mod search;
mod shell;
mod target;
mod text;
mod tool_tree;
mod walk;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use longhaul_engine::{Attempt, Failure, FailureKind, Handler, Payload, Probe};
use longhaul_workflows::contracts::{ToolOutcome, ToolUse, UseTool};
use longhaul_workflows::session::tools::ToolArgs;
use longhaul_workflows::settings::AgentSettings;

use crate::checks::SetUp;
use crate::git::GitHandlers;
use crate::longhaul_toml;
use crate::machine;
use crate::mcp::McpServers;
use crate::model::client::Clients;
use crate::process::{Runner, Supervisor};

pub use hook::HookHandler;

use edit::{Edit, EditContext};
use ready::tree_request;
use search::Scope;
use shell::{Command, fault_of};
use text::Secrets;
use tool_tree::{Fault, ToolTree};

/// Parts of the names of variables whose inherited values are secret.
const SECRET_NAMES: [&str; 4] = ["KEY", "TOKEN", "SECRET", "PASSWORD"];
/// The variables with the keys of providers.
const KEYS: [&str; 2] = ["ANTHROPIC_API_KEY", "OPENAI_API_KEY"];

/// Performs the tool calls of a model.
#[derive(Debug, Clone)]
pub struct ToolHandler {
    setup: SetUp,
    locks: ready::Locks,
    servers: McpServers,
    /// For MCP servers over HTTP.
    clients: Clients,
}

/// The answer of a tool.
#[derive(Debug)]
struct Answer {
    text: String,
    is_error: bool,
}

/// The variables of `[agent] env`, and all values to replace in answers.
#[derive(Debug, Default)]
struct Variables {
    env: BTreeMap<String, String>,
    secrets: Secrets,
}

impl ToolHandler {
    /// A handler that keeps its files in a data directory, which must exist. The MCP servers are
    /// shared with the [`HostedHandler`](crate::session::HostedHandler), which ends them.
    pub fn new(
        data_dir: impl AsRef<Path>,
        supervisor: Supervisor,
        git: GitHandlers,
        servers: McpServers,
    ) -> Self {
        let setup = SetUp { runner: Runner::new(data_dir, supervisor), git };
        Self { setup, locks: Arc::default(), servers, clients: Clients::default() }
    }

    /// The variables of the agent. Their values must not reach an answer.
    fn variables(&self, input: &ToolUse) -> Result<Variables, Failure> {
        let root = self.setup.git.root_of(&input.project);
        let agent = &input.agent;
        let env = if agent.env.is_empty() {
            BTreeMap::new()
        } else {
            longhaul_toml::agent_env(&root, &agent.env)?
        };
        let mut secrets: BTreeMap<_, _> = inherited_secrets(agent).collect();
        secrets.extend(env.clone());
        Ok(Variables { secrets: Secrets::new(&secrets), env })
    }

    async fn answer(
        &self,
        input: &ToolUse,
        args: ToolArgs,
        variables: &Arc<Variables>,
        attempt: &Attempt,
    ) -> Result<Answer, Fault> {
        let wanted = tree_request(input, attempt);
        let only_reads =
            matches!(args, ToolArgs::Read { .. } | ToolArgs::Search { .. } | ToolArgs::List { .. });
        let ready = tokio::select! {
            ready = self.ready(&wanted, only_reads) => ready.map_err(Fault::Call)?,
            () = attempt.cancelled() => return Err(Fault::Call(Failure::cancelled())),
        };
        let tree = &ready.tree;
        let answer = if let ToolArgs::Shell { command, timeout } = &args {
            let command =
                Command { input, text: command, timeout: *timeout, stdin: None, variables };
            self.shell(command, tree, attempt).await.map(|ran| ran.answer())
        } else {
            let call = FileCall {
                root: tree.path().to_owned(),
                record: tree.records().join("edits").join(record_name(input, attempt)),
                variables: Arc::clone(variables),
                attempt: attempt.clone(),
            };
            let answer = tokio::task::spawn_blocking(move || call.answer(&args)).await;
            answer.unwrap_or_else(|error| Err(format!("The tool ended early: {error}").into()))
        };
        if tree.is_in_use().map_err(Fault::Call)? {
            tree.settle().await.map_err(Fault::Call)?;
        }
        ready.with_notice(answer)
    }
}

#[async_trait]
impl Handler<UseTool> for ToolHandler {
    async fn perform(&self, input: ToolUse, attempt: &Attempt) -> Result<ToolOutcome, Failure> {
        let begun = Instant::now();
        let mut variables = Arc::default();
        let answer = match self.variables(&input) {
            Ok(found) => {
                variables = Arc::new(found);
                match (&input.mcp, ToolArgs::parse(&input.call.name, &input.call.input)) {
                    (Some(tool), _) => self.call_mcp(&input, tool, &variables, attempt).await,
                    (None, Ok(args)) => self.answer(&input, args, &variables, attempt).await,
                    (None, Err(fault)) => Err(Fault::Tool(fault)),
                }
            }
            Err(failure) => Err(fault_of(failure)),
        };
        let answer = match answer {
            Ok(answer) => answer,
            Err(Fault::Tool(text)) => Answer { text, is_error: true },
            Err(Fault::Call(failure)) => return Err(failure),
        };
        Ok(ToolOutcome {
            text: variables.secrets.redacted(&answer.text),
            is_error: answer.is_error,
            duration_ms: u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX),
        })
    }

    /// A shell command that was interrupted is not run again: the model decides.
    async fn probe(&self, input: ToolUse, attempt: &Attempt) -> Probe<ToolOutcome> {
        if let Err(failure) = self.setup.runner.end_call(&attempt.key()).await {
            return machine::unknown_outcome(failure);
        }
        if input.call.name != ToolUse::SHELL && input.mcp.is_none() {
            return Probe::NotHappened;
        }
        let mut notice = None;
        let found = match self.ready(&tree_request(&input, attempt), false).await {
            Ok(ready) => {
                notice = ready.notice;
                ready.tree.settle().await
            }
            Err(failure) => Err(failure),
        };
        match found {
            Err(failure) if failure.kind == FailureKind::Machine => {
                return Probe::Machine(failure.message);
            }
            // The next step reports it.
            Err(failure) => tracing::warn!(%failure, "the work tree of a tool call is not there"),
            Ok(()) => {}
        }
        let variables = match self.variables(&input) {
            Ok(variables) => variables,
            Err(failure) => return machine::unknown_outcome(failure),
        };
        let text = self.interrupted(attempt, &variables.secrets);
        let text = variables.secrets.redacted(&(notice.unwrap_or_default() + &text));
        Probe::Happened(ToolOutcome { text, is_error: true, duration_ms: 0 })
    }
}

/// A call of a tool on files.
struct FileCall {
    root: PathBuf,
    /// The record of the edit, if it is one.
    record: PathBuf,
    variables: Arc<Variables>,
    attempt: Attempt,
}

impl FileCall {
    fn answer(&self, args: &ToolArgs) -> Result<Answer, Fault> {
        let tree = &ToolTree::open(&self.root)?;
        let secrets = &self.variables.secrets;
        let is_cancelled = &|| self.attempt.is_cancelled();
        let site = EditContext { tree, root: &self.root, record: &self.record };
        let text = match args {
            ToolArgs::Read { path, start, end } => read::read(tree, secrets, path, (*start, *end))?,
            ToolArgs::Write { path, content } => edit::write(site, path, content)?,
            ToolArgs::Edit { path, old, new, count, all } => {
                edit::edit(site, &Edit { path, old, new, count: *count, all: *all })?
            }
            ToolArgs::Search { pattern, path, glob } => {
                let path = path.as_deref();
                let glob = glob.as_deref();
                search::search(Scope { tree, path, glob, is_cancelled }, secrets, pattern)?
            }
            ToolArgs::List { path, glob } => {
                let path = path.as_deref();
                let glob = glob.as_deref();
                search::list(Scope { tree, path, glob, is_cancelled })?
            }
            _ => return Err("This tool does not work on files.".to_owned().into()),
        };
        Ok(Answer { text, is_error: false })
    }
}

/// The name of the record of an edit. A rewound run can reach the same call with another input.
fn record_name(input: &ToolUse, attempt: &Attempt) -> String {
    let mut hasher = blake3::Hasher::new();
    hasher.update(attempt.key().as_bytes()).update(&[0]);
    hasher.update(Payload::of(&input.call).as_bytes());
    hasher.finalize().to_hex().to_string()
}

/// The inherited variables that may hold a secret, with their values.
fn inherited_secrets(agent: &AgentSettings) -> impl Iterator<Item = (String, String)> {
    let is_secret = |name: &&str| {
        let name = name.to_ascii_uppercase();
        SECRET_NAMES.iter().any(|part| name.contains(part))
    };
    let passed = agent.pass_env.iter().map(String::as_str).filter(is_secret);
    let key = agent.api.key_env.as_deref();
    let of_servers = agent.mcp.values().filter_map(|server| server.key_env.as_deref());
    let names = passed.chain(key).chain(of_servers).chain(KEYS);
    names.filter_map(|name| Some((name.to_owned(), std::env::var(name).ok()?)))
}
