//! One session of an agent: the configured program, its files, and its durable report.

mod driven;
mod driver;
mod files;
mod hosted;
mod judged;
mod progress_file;
mod used;

use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

use async_trait::async_trait;
use longhaul_engine::{Attempt, Failure, FailureKind, Handler, Probe, RunId};
use longhaul_workflows::contracts::{
    OpenInput, RunSession, SessionEnding, SessionInput, SessionReport, StepTree,
};
use longhaul_workflows::feature::feature_run;
use longhaul_workflows::prompt;
use longhaul_workflows::settings::{Confinement, Driver, Seconds};

use crate::checks::SetUp;
use crate::confine::{ConfinedPaths, describe, sandbox};
use crate::git::{GitHandlers, Landings, TreeRequest, WorkTree};
use crate::longhaul_toml;
use crate::machine::{self, Operation};
use crate::model::Limiter;
use crate::process::{Environment, Finished, Limits, Runner, Sandbox, Spec, Supervisor};
use crate::session::files::KeptConversation;

pub use crate::obstacle::{Obstacle, why_not};
pub use driver::{Preflight, Transcript, preflight, settings_problem};
use files::SessionFiles;
pub use hosted::HostedHandler;
pub use used::UseHandler;

/// The exit code of an agent whose context is full: a fresh session continues its work. An agent
/// that cannot choose its exit code creates the file that `LONGHAUL_CONTEXT_FULL_FILE` names.
pub(crate) const CONTEXT_FULL: i32 = 75;

/// The exit codes of shells, `env` and others for a command that cannot be executed, or was not
/// found.
const LACKS_COMMAND: [i32; 2] = [126, 127];

/// The name of the program in the file name of its log.
const NAME: &str = "session";

const REMEDY: &str = "Install it, or correct `[agent] command` in longhaul.toml.";

/// Runs sessions. Each has a directory `sessions/<run>/<call>` in the data directory, for its
/// record, and a directory `.longhaul/session` in its tree, shared with the agent.
#[derive(Debug, Clone)]
pub struct SessionHandler {
    setup: SetUp,
    limiter: Limiter,
}

impl SessionHandler {
    /// A handler that keeps its files in a data directory, which must exist.
    pub fn new(
        data_dir: impl AsRef<std::path::Path>,
        supervisor: Supervisor,
        git: GitHandlers,
        limiter: Limiter,
    ) -> Self {
        Self { setup: SetUp { runner: Runner::new(data_dir, supervisor), git }, limiter }
    }

    /// Ends the processes of an interrupted session, and keeps its uncommitted work under the
    /// returned ref.
    async fn end_interrupted(
        &self,
        input: &SessionInput,
        attempt: &Attempt,
    ) -> Result<Option<String>, Failure> {
        self.setup.runner.end_call(&attempt.key()).await?;
        let open = OpenInput {
            project: input.project.clone(),
            target: input.target.clone(),
            feature: input.feature.id.clone(),
            called_done: false,
            may_have_landed: false,
        };
        Ok(self.setup.git.reopen_worktree(&open, attempt).await?.rescued)
    }

    /// The report of an agent that exited, but whose end was not reported before Longhaul was
    /// killed.
    async fn unreported(
        &self,
        input: &SessionInput,
        attempt: &Attempt,
    ) -> Result<Option<SessionReport>, Failure> {
        // A known agent reports its end in its output; its conversation goes on instead.
        if input.agent.driver != Driver::Command {
            return Ok(None);
        }
        let files = self.files(input, attempt);
        let outcome = self.setup.runner.kept_outcome(&files.outcome(), attempt, NAME);
        let Some(finished) = outcome else { return Ok(None) };
        let project = &input.project;
        let feature = &input.feature.id;
        let tree = StepTree::Feature;
        let wanted = TreeRequest { project, feature, tree, commit: None, attempt };
        if !self.setup.git.settle_interrupted(&wanted).await? {
            return Ok(None);
        }
        let root = self.setup.git.root_of(project);
        let worktree = self.setup.git.feature_tree_path(project, feature);
        let (program, _) = driver::command_program(&input.agent.command, &root)?;
        let env = Environment::chosen(&input.agent.pass_env);
        let sandbox = sandbox_of(&self.setup, input, &worktree, Some(&program), &env)?;
        let sandbox = describe(sandbox.as_ref());
        let report = report_of(&finished, &files, sandbox, ending(&finished, &files));
        files.keep(&report).map_err(|error| {
            let message = format!("the report of a session cannot be kept: {error}");
            machine::failure(
                &error,
                Operation::Files,
                files.directory(),
                message,
                Failure::retryable,
            )
        })?;
        Ok(Some(report))
    }

    fn files(&self, input: &SessionInput, attempt: &Attempt) -> SessionFiles {
        SessionFiles::new(&self.setup, attempt, input)
    }

    fn spec(&self, job: &SessionJob<'_>, start: Start) -> Result<Spec, Failure> {
        let SessionJob { input, files, attempt, root, .. } = *job;
        let tree = job.tree.path();
        let agent = &input.agent;
        let env = start
            .env
            .with_all(&longhaul_toml::agent_env(root, &agent.env)?)
            .with("LONGHAUL_PROMPT_FILE", files.prompt())
            .with("LONGHAUL_FEATURE_FILE", files.feature())
            .with("LONGHAUL_NOTES_FILE", files.notes_file())
            .with("LONGHAUL_CONTEXT_FULL_FILE", files.context_full())
            .with("LONGHAUL_FEATURE_ID", input.feature.id.as_str())
            .with("LONGHAUL_RUN_ID", feature_run(&attempt.run).as_str())
            .with("LONGHAUL_SESSION", input.number.to_string())
            .with("LONGHAUL_REASON", input.reason.as_str());
        let sandbox = sandbox_of(&self.setup, input, tree, Some(&start.program), &env)?;
        let level = describe(sandbox.as_ref());
        let session = input.number;
        tracing::info!(run = %attempt.run, session, sandbox = level, "a session begins");
        let _ = job.sandbox.set(level);
        let limit = |seconds: Seconds| Some(seconds.duration()).filter(|limit| !limit.is_zero());
        let available = input.available.map(|left| Duration::from_millis(left.time_ms));
        let total = limit(agent.timeout).into_iter().chain(available).min();
        Ok(Spec {
            name: start.name,
            program: start.program,
            args: start.args,
            directory: tree.into(),
            env,
            input: Some(files.input()),
            sandbox,
            limits: Limits { total, silence: limit(agent.silence_timeout) },
            remedy: REMEDY,
        })
    }

    /// Runs the configured command to its end.
    async fn run_command(&self, job: &SessionJob<'_>) -> Result<SessionReport, Failure> {
        let agent = &job.input.agent;
        let (program, args) = driver::command_program(&agent.command, job.root)?;
        let env = Environment::chosen(&agent.pass_env);
        let spec = self.spec(job, Start { name: NAME.into(), program, args, env })?;
        let runner = &self.setup.runner;
        let finished = runner.run_keeping(&spec, job.attempt, &job.files.outcome()).await?;
        Ok(report_of(&finished, job.files, job.level(), ending(&finished, job.files)))
    }

    /// Prepares the files and the prompt, and runs the agent.
    async fn run_agent(
        &self,
        input: &SessionInput,
        attempt: &Attempt,
        files: &SessionFiles,
        tree: &WorkTree,
        earlier: &EarlierAttempts,
        sandbox: &OnceLock<String>,
    ) -> Result<SessionReport, Failure> {
        let EarlierAttempts { rescued, conversation } = earlier;
        let mut prompt = prompt::session(input);
        let mut resumed = driven::RESUMED.to_owned();
        if let Some(reference) = rescued {
            for text in [&mut prompt, &mut resumed] {
                let _ = write!(
                    text,
                    "\n# Interrupted session\n\nAn earlier session with this task was \
                     interrupted. Its commits are here; its uncommitted work is kept: `git show \
                     {reference}`.\n"
                );
            }
        }
        let root = self.setup.git.root_of(&input.project);
        let job = SessionJob { input, attempt, files, tree, root: &root, prompt: &prompt, sandbox };
        let notes = if rescued.is_none() { files.notes().ok() } else { None };
        files.prepare(input, &prompt).map_err(|error| job.files.unwritable(&error))?;
        progress_file::copy_in(tree, &root).await?;
        let Some(driver) = driver::of(input.agent.driver) else {
            return self.run_command(&job).await;
        };
        let kept = conversation.as_ref().map(|kept| kept.progress.clone()).unwrap_or_default();
        if !kept.conversation.is_empty() {
            let notes = notes.filter(|_| conversation.as_ref().is_some_and(|it| it.is_paused));
            files
                .write_input(&resumed)
                .and_then(|()| files.write_notes(&notes.unwrap_or_default()))
                .map_err(|error| job.files.unwritable(&error))?;
        }
        self.drive(&job, driver, kept).await
    }
}

/// One session to run.
#[derive(Clone, Copy)]
struct SessionJob<'a> {
    input: &'a SessionInput,
    attempt: &'a Attempt,
    files: &'a SessionFiles,
    tree: &'a WorkTree,
    /// The user's checkout.
    root: &'a Path,
    /// The prompt of a new conversation.
    prompt: &'a str,
    /// The sandbox, when it is known.
    sandbox: &'a OnceLock<String>,
}

impl SessionJob<'_> {
    /// The level of the sandbox; empty before it is known.
    fn level(&self) -> String {
        self.sandbox.get().cloned().unwrap_or_default()
    }
}

/// The remains of earlier attempts of a session.
struct EarlierAttempts {
    /// The ref of their uncommitted work, which is not in the tree.
    rescued: Option<String>,
    conversation: Option<KeptConversation>,
}

/// The program of an agent.
struct Start {
    /// The name in the file name of its log.
    name: String,
    program: OsString,
    args: Vec<OsString>,
    env: Environment,
}

#[async_trait]
impl Handler<RunSession> for SessionHandler {
    async fn perform(
        &self,
        input: SessionInput,
        attempt: &Attempt,
    ) -> Result<SessionReport, Failure> {
        let files = self.files(&input, attempt);
        if let Some(report) = files.report() {
            return Ok(report);
        }
        self.wait_for_provider(&input, attempt)?;
        let conversation = files.conversation().or_else(|| recorded_conversation(attempt));
        let is_paused = conversation.as_ref().is_some_and(|kept| kept.is_paused);
        let rescued = if files.exist() && !is_paused {
            self.end_interrupted(&input, attempt).await?
        } else {
            None
        };
        let run = feature_run(&attempt.run);
        let counted = files.counted_landings();
        if let Some(landed) = landed(&self.setup.git, &input, &run, counted).await? {
            return Ok(without_agent(landed, String::new()));
        }
        let wanted = TreeRequest {
            project: &input.project,
            feature: &input.feature.id,
            tree: StepTree::Feature,
            commit: None,
            attempt,
        };
        let tree = self.setup.work_tree(&wanted).await?;
        tree.watch_target(&input.target, attempt).await?;
        let earlier = EarlierAttempts { rescued, conversation };
        let sandbox = OnceLock::new();
        let ran = self.run_agent(&input, attempt, &files, &tree, &earlier, &sandbox).await;
        let report = match ran {
            Ok(report) => report,
            Err(failure) if failure.kind == FailureKind::Terminal => {
                let ending = SessionEnding::NotStarted { reason: failure.message };
                let sandbox = sandbox.into_inner().unwrap_or_else(|| describe(None));
                return Ok(without_agent(ending, sandbox));
            }
            Err(failure) => return Err(failure),
        };
        if let SessionEnding::Failed { reason, .. } = &report.ending
            && let Some(cause) = machine::full(tree.path())
        {
            return Err(Failure::machine(format!("{cause}: the agent failed there ({reason})")));
        }
        // The report proves that the session has ended: its work must survive a power cut first.
        tree.settle().await?;
        if let Err(error) = files.keep(&report) {
            // The log records the report next. A crash before that repeats the session; failing
            // here would repeat it for certain.
            tracing::warn!(
                run = %attempt.run,
                %error,
                "the report of a session is not kept in its directory",
            );
        }
        Ok(report)
    }

    /// A lost session leaves its work in the work tree, where a fresh one continues.
    async fn probe(&self, input: SessionInput, attempt: &Attempt) -> Probe<SessionReport> {
        if let Err(failure) = self.setup.runner.end_call(&attempt.key()).await {
            return machine::unknown_outcome(failure);
        }
        if let Some(report) = self.files(&input, attempt).report() {
            return Probe::Happened(report);
        }
        match self.unreported(&input, attempt).await {
            Ok(report) => report.map_or(Probe::NotHappened, Probe::Happened),
            Err(failure) if failure.kind == FailureKind::Machine => Probe::Machine(failure.message),
            Err(failure) => {
                tracing::warn!(run = %attempt.run, %failure, "a session begins anew");
                Probe::NotHappened
            }
        }
    }
}

/// The conversation that an earlier attempt recorded in the history.
fn recorded_conversation(attempt: &Attempt) -> Option<KeptConversation> {
    let progress = attempt.last_progress.as_ref()?.read().ok()?;
    Some(KeptConversation { progress, is_paused: false })
}

/// The sandbox of a program of a session; without one, that of the tools that it will start.
fn sandbox_of(
    setup: &SetUp,
    input: &SessionInput,
    tree: &Path,
    program: Option<&OsStr>,
    env: &Environment,
) -> Result<Option<Sandbox>, Failure> {
    let root = setup.git.root_of(&input.project);
    let data_dir = setup.runner.data_dir();
    let places = ConfinedPaths { root: &root, tree, data_dir, sees_held_out: false };
    let agent = input.agent.confinement();
    let confinement = Confinement { held_out: input.held_out.clone(), ..agent };
    sandbox(&places, program.map(Path::new), env, &confinement)
}

/// Whether the session's work has already landed: the log of its run has lost its end.
async fn landed(
    git: &GitHandlers,
    input: &SessionInput,
    run: &RunId,
    counted: Landings,
) -> Result<Option<SessionEnding>, Failure> {
    if input.redo {
        return Ok(None);
    }
    let SessionInput { project, target, feature, .. } = input;
    let landed = git.landed_work(project, target, &feature.id, run, counted).await?;
    Ok(landed.map(|landed| SessionEnding::Landed { commit: landed.commit, files: landed.files }))
}

/// The report of a session without an agent process.
fn without_agent(ending: SessionEnding, sandbox: String) -> SessionReport {
    SessionReport { sandbox, ..SessionReport::without_agent(ending) }
}

/// The claim of a command.
fn ending(finished: &Finished, files: &SessionFiles) -> SessionEnding {
    match finished.exit_code {
        Some(_) if files.says_context_full() => SessionEnding::ContextFull,
        Some(0) => SessionEnding::ClaimsDone,
        Some(CONTEXT_FULL) => SessionEnding::ContextFull,
        code => {
            let lacks_command = code.is_some_and(|code| LACKS_COMMAND.contains(&code));
            SessionEnding::Failed { reason: finished.ending(), lacks_command }
        }
    }
}

fn report_of(
    finished: &Finished,
    files: &SessionFiles,
    sandbox: String,
    ending: SessionEnding,
) -> SessionReport {
    let (notes, unread_notes) = match files.notes() {
        Ok(notes) => (notes, None),
        Err(reason) => (String::new(), Some(reason)),
    };
    SessionReport {
        ending,
        notes,
        unread_notes,
        duration_ms: driver::millis(finished.duration),
        output_digest: finished.output_digest.clone(),
        output_tail: finished.output_tail.clone(),
        log: finished.log.clone(),
        sandbox,
        tampered: Vec::new(),
        outside: Vec::new(),
        agent: None,
    }
}
