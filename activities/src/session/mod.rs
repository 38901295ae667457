//! One session of an agent: the configured program, its files, and the report that outlives us.

mod files;
mod progress_file;

use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::Path;

use async_trait::async_trait;
use longhaul_engine::{Attempt, Failure, Handler, Probe};
use longhaul_workflows::contracts::{OpenInput, RunSession, SessionEnding, SessionInput, SessionReport};
use longhaul_workflows::prompt;
use longhaul_workflows::settings::{Confinement, Seconds};

use crate::checks::SetUp;
use crate::confine::{Places, describe, sandbox};
use crate::git::{GitHandlers, Wanted};
use crate::process::{Environment, Finished, Limits, Runner, Spec, Supervisor};

use files::SessionFiles;

/// The exit code by which an agent says that its context is full and that a fresh session should go on. One that cannot
/// choose its exit code makes the file that `LONGHAUL_CONTEXT_FULL_FILE` names.
pub const CONTEXT_FULL: i32 = 75;

const REMEDY: &str = "Install it, or correct `[agent] command` in longhaul.toml.";

/// Runs sessions. Each has a folder `sessions/<run>/<call>` in the data directory, for its record, and a folder
/// `.longhaul/session` in its tree, which the agent reads and writes.
#[derive(Debug, Clone)]
pub struct SessionHandler {
    setup: SetUp,
}

impl SessionHandler {
    /// A handler that keeps its files in a data directory, which must be there.
    pub fn new(data_dir: impl AsRef<std::path::Path>, supervisor: Supervisor, git: GitHandlers) -> Self {
        Self { setup: SetUp { runner: Runner::new(data_dir, supervisor), git } }
    }

    /// Ends what is left of a session that was cut, and keeps what it did not commit; the ref that holds it.
    async fn clear_up(&self, input: &SessionInput, attempt: &Attempt) -> Result<Option<String>, Failure> {
        self.setup.runner.end_call(&attempt.key()).await?;
        let open = OpenInput {
            project: input.project.clone(),
            target: input.target.clone(),
            feature: input.feature.id.clone(),
        };
        Ok(self.setup.git.reopen_worktree(&open, attempt).await?.rescued)
    }

    fn files(&self, input: &SessionInput, attempt: &Attempt) -> SessionFiles {
        SessionFiles::new(self.setup.runner.data_dir(), attempt, input)
    }

    fn spec(
        &self,
        input: &SessionInput,
        root: &Path,
        attempt: &Attempt,
        files: &SessionFiles,
    ) -> Result<Spec, Failure> {
        let agent = &input.agent;
        let (program, args) = command(input, root)?;
        let env = Environment::chosen(&agent.pass_env)
            .with_all(&agent.env)
            .with("LONGHAUL_PROMPT_FILE", files.prompt())
            .with("LONGHAUL_FEATURE_FILE", files.feature())
            .with("LONGHAUL_NOTES_FILE", files.notes_file())
            .with("LONGHAUL_CONTEXT_FULL_FILE", files.context_full())
            .with("LONGHAUL_FEATURE_ID", input.feature.id.as_str())
            .with("LONGHAUL_RUN_ID", attempt.run.as_str())
            .with("LONGHAUL_SESSION", input.number.to_string())
            .with("LONGHAUL_REASON", input.reason.as_str());
        let tree = Path::new(&input.worktree);
        let places =
            Places { root, tree, data_dir: self.setup.runner.data_dir(), is_session: true, sees_held_out: false };
        let confinement = Confinement { held_out: input.held_out.clone(), ..agent.confinement() };
        let sandbox = sandbox(&places, Some(Path::new(&program)), &env, &confinement)?;
        let limit = |seconds: Seconds| Some(seconds.duration()).filter(|limit| !limit.is_zero());
        Ok(Spec {
            name: "session".into(),
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
    async fn perform(&self, mut input: SessionInput, attempt: &Attempt) -> Result<SessionReport, Failure> {
        let files = self.files(&input, attempt);
        if let Some(report) = files.report() {
            return Ok(report);
        }
        let wanted = Wanted {
            project: &input.project,
            feature: &input.feature.id,
            worktree: &input.worktree,
            commit: None,
            run: &attempt.run,
        };
        self.setup.git.work_tree(&wanted).await?;
        let kept = if files.exist() { self.clear_up(&input, attempt).await? } else { None };
        input.worktree = self.setup.work_tree(&wanted, attempt).await?;
        let files = files.in_tree(&input.worktree);
        let mut prompt = prompt::session(&input);
        if let Some(reference) = kept {
            let _ = write!(
                prompt,
                "\n# A session was cut\n\nA session with this same task was cut before it ended. What it committed is \
                 here; what it did not commit is kept: `git show {reference}`.\n"
            );
        }
        let unwritable = |error| {
            Failure::retryable(format!(
                "the files of a session cannot be written in {}: {error}",
                files.folder().display()
            ))
        };
        files.prepare(&input, &prompt).map_err(unwritable)?;
        let root = self.setup.git.root_of(&input.project);
        progress_file::bring(&input, &root).await?;
        let spec = self.spec(&input, &root, attempt, &files)?;
        let sandbox = describe(spec.sandbox.as_ref());
        tracing::info!(run = %attempt.run, session = input.number, sandbox, "a session begins");
        let finished = self.setup.runner.run(&spec, attempt).await?;
        let report = report(&finished, &files, sandbox);
        files.keep(&report).map_err(unwritable)?;
        Ok(report)
    }

    /// A session that was lost on its way leaves its work in the work tree, for a fresh one to go on with.
    async fn probe(&self, input: SessionInput, attempt: &Attempt) -> Probe<SessionReport> {
        if let Err(failure) = self.setup.runner.end_call(&attempt.key()).await {
            return Probe::Unknown(failure.message);
        }
        self.files(&input, attempt).report().map_or(Probe::NotLanded, Probe::Landed)
    }
}

/// The program of an agent and its arguments, where it is looked for from the user's checkout.
fn command(input: &SessionInput, root: &Path) -> Result<(OsString, Vec<OsString>), Failure> {
    let Some((program, args)) = input.agent.command.split_first().filter(|(program, _)| !program.is_empty()) else {
        let root = root.display();
        return Err(Failure::terminal(format!(
            "no agent is configured in {root}/longhaul.toml: set `[agent] command` to a program and its arguments, for \
             example command = [\"./agent.sh\"]"
        )));
    };
    let program =
        if program.contains('/') { root.join(program.trim_start_matches("./")).into() } else { program.into() };
    Ok((program, args.iter().map(Into::into).collect()))
}

fn report(finished: &Finished, files: &SessionFiles, sandbox: String) -> SessionReport {
    let ending = match finished.exit_code {
        Some(_) if files.says_context_full() => SessionEnding::ContextFull,
        Some(0) => SessionEnding::ClaimsDone,
        Some(CONTEXT_FULL) => SessionEnding::ContextFull,
        _ => SessionEnding::Failed { reason: finished.ending() },
    };
    SessionReport {
        ending,
        notes: files.notes(),
        duration_ms: u64::try_from(finished.duration.as_millis()).unwrap_or(u64::MAX),
        output_digest: finished.output_digest.clone(),
        output_tail: finished.output_tail.clone(),
        log: finished.log.to_string_lossy().into_owned(),
        sandbox,
    }
}
