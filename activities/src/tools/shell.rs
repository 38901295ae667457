//! `shell`: a command in the sandbox and environment of the agent.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::Duration;

use longhaul_engine::{Attempt, Failure, FailureKind};
use longhaul_workflows::contracts::ToolUse;
use longhaul_workflows::feature::feature_run;
use longhaul_workflows::settings::{Confinement, Seconds};

use crate::confine::{ConfinedPaths, sandbox};
use crate::git::WorkTree;
use crate::machine::{self, Operation};
use crate::process::{Environment, Finished, Limits, Spec, logs_of};

use super::text::{HeadAndTail, Secrets};
use super::tool_tree::Fault;
use super::{Answer, ToolHandler, Variables};

/// The default timeout of a command.
const TIMEOUT: Duration = Duration::from_mins(10);
/// The most bytes of an answer.
const BYTES: usize = 16 * 1024;
/// The name of its log.
const NAME: &str = "shell";

/// A command to run.
#[derive(Debug, Clone)]
pub(super) struct Command<'a> {
    pub(super) input: &'a ToolUse,
    pub(super) text: &'a str,
    pub(super) timeout: Option<u64>,
    /// The file for its standard input.
    pub(super) stdin: Option<PathBuf>,
    pub(super) variables: &'a Variables,
}

impl ToolHandler {
    /// Runs a command to its end. All its processes have ended then, and its files are on stable
    /// storage.
    pub(super) async fn shell(
        &self,
        command: Command<'_>,
        tree: &WorkTree,
        attempt: &Attempt,
    ) -> Result<ShellResult, Fault> {
        let spec = self.spec(&command, tree.path(), attempt).map_err(fault_of)?;
        tree.begin_use().map_err(Fault::Call)?;
        let ran = self.setup.runner.run(&spec, attempt).await;
        let secrets = &command.variables.secrets;
        let ran = match ran {
            Ok(finished) => {
                let log = self.setup.runner.data_dir().join(&finished.log);
                ended(&spec, finished, &log, secrets)
            }
            Err(failure) => Err(fault_of(failure)),
        };
        tree.settle().await.map_err(Fault::Call)?;
        ran
    }

    fn spec(&self, command: &Command<'_>, tree: &Path, attempt: &Attempt) -> Result<Spec, Failure> {
        let input = command.input;
        let root = self.setup.git.root_of(&input.project);
        let agent = &input.agent;
        let env = Environment::chosen(&agent.pass_env)
            .with_all(&command.variables.env)
            .with("LONGHAUL_ROOT", &root)
            .with("LONGHAUL_FEATURE_ID", input.feature.as_str())
            .with("LONGHAUL_RUN_ID", feature_run(&attempt.run).as_str());
        let places = ConfinedPaths {
            root: &root,
            tree,
            data_dir: self.setup.runner.data_dir(),
            sees_held_out: false,
        };
        let confinement = Confinement { held_out: input.held_out.clone(), ..agent.confinement() };
        let sandbox = sandbox(&places, None, &env, &confinement)?;
        let limit = |seconds: Seconds| Some(seconds.duration()).filter(|limit| !limit.is_zero());
        let timeout = command.timeout.map_or(TIMEOUT, Duration::from_secs);
        let longest = limit(agent.timeout).unwrap_or(Duration::MAX);
        let has_bash = env.get("PATH").is_some_and(|path| {
            std::env::split_paths(path).any(|directory| directory.join("bash").is_file())
        });
        Ok(Spec {
            name: NAME.into(),
            program: if has_bash { "bash" } else { "sh" }.into(),
            args: vec!["-c".into(), command.text.into()],
            directory: tree.into(),
            env,
            input: command.stdin.clone(),
            sandbox,
            limits: Limits {
                total: Some(timeout.min(longest)),
                silence: limit(agent.silence_timeout),
            },
            remedy: "Install a shell.",
        })
    }

    /// The answer for a command that was running when Longhaul stopped.
    pub(super) fn interrupted(&self, attempt: &Attempt, secrets: &Secrets) -> String {
        let logs = logs_of(self.setup.runner.data_dir(), attempt, NAME);
        let output = logs.last().and_then(|log| output(log, secrets).ok()).unwrap_or_default();
        remove(logs);
        let output = match output.trim_end() {
            "" => String::new(),
            output => format!(" Its output until then:\n{output}"),
        };
        format!(
            "The command was interrupted, and its outcome is unknown: it may have done all of its \
             work, a part, or nothing. Look before you run it again.{output}"
        )
    }
}

/// A command that has ended.
pub(super) struct ShellResult {
    /// The part of its output that the model may see.
    pub(super) output: String,
    pub(super) finished: Finished,
}

impl ShellResult {
    /// The text for the model: the output and its end.
    pub(super) fn answer(&self) -> Answer {
        let Self { output, finished } = self;
        let newline = if output.is_empty() || output.ends_with('\n') { "" } else { "\n" };
        let text = format!("{output}{newline}[{}]", finished.ending());
        Answer { text, is_error: finished.exit_code != Some(0) }
    }
}

fn ended(
    spec: &Spec,
    finished: Finished,
    log: &Path,
    secrets: &Secrets,
) -> Result<ShellResult, Fault> {
    let failed = finished.exit_code != Some(0);
    // A failure on a full disk proves nothing about the work.
    if let Some(cause) = machine::full(&spec.directory).filter(|_| failed) {
        let message = format!("{cause}: a command failed there ({})", finished.ending());
        return Err(Fault::Call(Failure::machine(message)));
    }
    let output = output(log, secrets).map_err(|error| {
        let message = format!("the output in {} cannot be read: {error}", log.display());
        fault_of(machine::failure(&error, Operation::Files, log, message, Failure::retryable))
    })?;
    // The answer has the part that the model may see. The log has more: secrets too.
    remove(vec![log.to_owned()]);
    Ok(ShellResult { output, finished })
}

/// The output in a log: if it is long, its begin and its end.
fn output(log: &Path, secrets: &Secrets) -> io::Result<String> {
    let needed = HeadAndTail::needed(BYTES, secrets) as u64;
    let mut file = File::open(log)?;
    let length = file.metadata()?.len();
    let mut ends = HeadAndTail { first: Vec::new(), last: Vec::new(), length };
    (&mut file).take(needed).read_to_end(&mut ends.first)?;
    if length > BYTES as u64 {
        file.seek(SeekFrom::Start(length.saturating_sub(needed)))?;
        file.take(needed).read_to_end(&mut ends.last)?;
    }
    Ok(ends.text(BYTES, secrets))
}

fn remove(logs: Vec<PathBuf>) {
    for log in logs {
        if let Err(error) = std::fs::remove_file(&log) {
            tracing::warn!(log = %log.display(), %error, "the log of a command is not removed");
        }
    }
}

/// A failure as an answer to the model, unless it is one of the machine or a cancellation.
pub(super) fn fault_of(failure: Failure) -> Fault {
    match failure.kind {
        FailureKind::Machine | FailureKind::Cancelled => Fault::Call(failure),
        _ => Fault::Tool(failure.message),
    }
}
