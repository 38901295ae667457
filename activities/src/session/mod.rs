//! One session of an agent: the configured program, its files, and its durable report.

mod files;
mod hosted;
mod progress_file;

use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::Path;

use async_trait::async_trait;
use longhaul_engine::{Attempt, Failure, FailureKind, Handler, Probe, RunId};
use longhaul_workflows::contracts::{
    OpenInput, RunSession, SessionEnding, SessionInput, SessionReport,
};
use longhaul_workflows::prompt;
use longhaul_workflows::settings::{Confinement, Seconds};

use crate::checks::SetUp;
use crate::confine::{Places, describe, sandbox};
use crate::git::{GitHandlers, Wanted};
use crate::machine::{self, Operation};
use crate::process::{Environment, Finished, Limits, Runner, Spec, Supervisor};
use crate::project;

use files::SessionFiles;
pub use hosted::HostedHandler;

/// The exit code of an agent whose context is full: a fresh session continues its work. An agent
/// that cannot choose its exit code creates the file that `LONGHAUL_CONTEXT_FULL_FILE` names.
pub const CONTEXT_FULL: i32 = 75;

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
}

impl SessionHandler {
    /// A handler that keeps its files in a data directory, which must exist.
    pub fn new(
        data_dir: impl AsRef<std::path::Path>,
        supervisor: Supervisor,
        git: GitHandlers,
    ) -> Self {
        Self { setup: SetUp { runner: Runner::new(data_dir, supervisor), git } }
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
        let files = self.files(input, attempt);
        let outcome = self.setup.runner.kept_outcome(&files.outcome(), attempt, NAME);
        let Some(finished) = outcome else { return Ok(None) };
        let (project, feature) = (&input.project, &input.feature.id);
        let worktree = &input.worktree;
        let wanted = Wanted { project, feature, worktree, commit: None, attempt };
        if !self.setup.git.settle_interrupted(&wanted).await? {
            return Ok(None);
        }
        let root = self.setup.git.root_of(project);
        let spec = self.spec(input, &root, Path::new(worktree), attempt, &files);
        let sandbox = describe(spec.ok().as_ref().and_then(|spec| spec.sandbox.as_ref()));
        let report = report(&finished, &files, sandbox);
        files.keep(&report).map_err(|error| {
            let message = format!("the report of a session cannot be kept: {error}");
            machine::failure(&error, Operation::Files, files.folder(), message, Failure::retryable)
        })?;
        Ok(Some(report))
    }

    fn files(&self, input: &SessionInput, attempt: &Attempt) -> SessionFiles {
        SessionFiles::new(self.setup.runner.data_dir(), attempt, input)
    }

    fn spec(
        &self,
        input: &SessionInput,
        root: &Path,
        tree: &Path,
        attempt: &Attempt,
        files: &SessionFiles,
    ) -> Result<Spec, Failure> {
        let agent = &input.agent;
        let (program, args) = command(input, root)?;
        let env = Environment::chosen(&agent.pass_env)
            .with_all(&project::agent_env(root, &agent.env)?)
            .with("LONGHAUL_PROMPT_FILE", files.prompt())
            .with("LONGHAUL_FEATURE_FILE", files.feature())
            .with("LONGHAUL_NOTES_FILE", files.notes_file())
            .with("LONGHAUL_CONTEXT_FULL_FILE", files.context_full())
            .with("LONGHAUL_FEATURE_ID", input.feature.id.as_str())
            .with("LONGHAUL_RUN_ID", attempt.run.as_str())
            .with("LONGHAUL_SESSION", input.number.to_string())
            .with("LONGHAUL_REASON", input.reason.as_str());
        let places =
            Places { root, tree, data_dir: self.setup.runner.data_dir(), sees_held_out: false };
        let confinement = Confinement { held_out: input.held_out.clone(), ..agent.confinement() };
        let sandbox = sandbox(&places, Some(Path::new(&program)), &env, &confinement)?;
        let limit = |seconds: Seconds| Some(seconds.duration()).filter(|limit| !limit.is_zero());
        Ok(Spec {
            name: NAME.into(),
            program,
            args,
            folder: tree.into(),
            env,
            input: Some(files.input()),
            sandbox,
            limits: Limits { total: limit(agent.timeout), silence: limit(agent.silence_timeout) },
            remedy: REMEDY,
        })
    }
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
        let kept = if files.exist() { self.end_interrupted(&input, attempt).await? } else { None };
        if let Some(landed) =
            landed(&self.setup.git, &input, &attempt.run, files.exist_of_run()).await?
        {
            return Ok(without_agent(landed, String::new()));
        }
        let wanted = Wanted {
            project: &input.project,
            feature: &input.feature.id,
            worktree: &input.worktree,
            commit: None,
            attempt,
        };
        let tree = self.setup.work_tree(&wanted).await?;
        tree.watch_target(&input.target, attempt).await?;
        let files = files.in_tree(tree.path());
        let mut prompt = prompt::session(&input);
        if let Some(reference) = kept {
            let _ = write!(
                prompt,
                "\n# Interrupted session\n\nAn earlier session with this task was interrupted. Its \
                 commits are here; its uncommitted work is kept: `git show {reference}`.\n"
            );
        }
        let unwritable = |error: std::io::Error| {
            let folder = files.folder();
            let message = format!(
                "the files of a session cannot be written in {}: {error}",
                folder.display()
            );
            machine::failure(&error, Operation::Files, folder, message, Failure::retryable)
        };
        files.prepare(&input, &prompt).map_err(unwritable)?;
        let root = self.setup.git.root_of(&input.project);
        progress_file::copy_in(&tree, &root).await?;
        let spec = self.spec(&input, &root, tree.path(), attempt, &files);
        let sandbox = describe(spec.as_ref().ok().and_then(|spec| spec.sandbox.as_ref()));
        tracing::info!(run = %attempt.run, session = input.number, sandbox, "a session begins");
        let ran = match spec {
            Ok(spec) => self.setup.runner.run_keeping(&spec, attempt, &files.outcome()).await,
            Err(failure) => Err(failure),
        };
        let finished = match ran {
            Ok(finished) => finished,
            Err(failure) if failure.kind == FailureKind::Terminal => {
                return Ok(without_agent(
                    SessionEnding::NotStarted { reason: failure.message },
                    sandbox,
                ));
            }
            Err(failure) => return Err(failure),
        };
        let report = report(&finished, &files, sandbox);
        if matches!(report.ending, SessionEnding::Failed { .. })
            && let Some(cause) = machine::full(tree.path())
        {
            let message = format!("{cause}: the agent failed there ({})", finished.ending());
            return Err(Failure::machine(message));
        }
        // The report proves that the session has ended: its work must survive a power cut first.
        tree.settle().await?;
        if let Err(error) = files.keep(&report) {
            // The log records the report next. A crash before that repeats the session; failing
            // here would repeat it for certain.
            tracing::warn!(
                run = %attempt.run,
                %error,
                "the report of a session is not kept in its folder",
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
            return Probe::Landed(report);
        }
        match self.unreported(&input, attempt).await {
            Ok(report) => report.map_or(Probe::NotLanded, Probe::Landed),
            Err(failure) if failure.kind == FailureKind::Machine => Probe::Machine(failure.message),
            Err(failure) => {
                tracing::warn!(run = %attempt.run, %failure, "a session begins anew");
                Probe::NotLanded
            }
        }
    }
}

/// The program of an agent and its arguments, resolved from the user's checkout.
fn command(input: &SessionInput, root: &Path) -> Result<(OsString, Vec<OsString>), Failure> {
    let Some((program, args)) =
        input.agent.command.split_first().filter(|(program, _)| !program.is_empty())
    else {
        let root = root.display();
        return Err(Failure::terminal(format!(
            "no agent is configured in {root}/longhaul.toml: set `[agent] command` to a program \
             and its arguments, for example command = [\"./agent.sh\"]"
        )));
    };
    let program = if program.contains('/') {
        root.join(program.trim_start_matches("./")).into()
    } else {
        program.into()
    };
    Ok((program, args.iter().map(Into::into).collect()))
}

/// Whether the session's work has already landed: the log of its run has lost its end.
async fn landed(
    git: &GitHandlers,
    input: &SessionInput,
    run: &RunId,
    may_be: bool,
) -> Result<Option<SessionEnding>, Failure> {
    if input.redo {
        return Ok(None);
    }
    let SessionInput { project, target, feature, .. } = input;
    let landed = git.landed_work(project, target, &feature.id, run, may_be).await?;
    Ok(landed.map(|landed| SessionEnding::Landed { commit: landed.commit, files: landed.files }))
}

/// The report of a session without an agent process.
fn without_agent(ending: SessionEnding, sandbox: String) -> SessionReport {
    SessionReport { sandbox, ..SessionReport::without_agent(ending) }
}

fn report(finished: &Finished, files: &SessionFiles, sandbox: String) -> SessionReport {
    let ending = match finished.exit_code {
        Some(_) if files.says_context_full() => SessionEnding::ContextFull,
        Some(0) => SessionEnding::ClaimsDone,
        Some(CONTEXT_FULL) => SessionEnding::ContextFull,
        code => {
            let lacks_command = code.is_some_and(|code| LACKS_COMMAND.contains(&code));
            SessionEnding::Failed { reason: finished.ending(), lacks_command }
        }
    };
    let (notes, unread_notes) = match files.notes() {
        Ok(notes) => (notes, None),
        Err(reason) => (String::new(), Some(reason)),
    };
    SessionReport {
        ending,
        notes,
        unread_notes,
        duration_ms: u64::try_from(finished.duration.as_millis()).unwrap_or(u64::MAX),
        output_digest: finished.output_digest.clone(),
        output_tail: finished.output_tail.clone(),
        log: finished.log.to_string_lossy().into_owned(),
        sandbox,
    }
}
