//! Runs checks and set-up scripts in a work tree at a known commit, and returns evidence of the
//! result.

mod held_out;
mod passed;
mod setup;
mod unmet_need;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use longhaul_engine::{Attempt, Failure, Handler};
use longhaul_workflows::backlog::Check;
use longhaul_workflows::contracts::{
    ChecksInput, ChecksReport, Evidence, HeldOut, Precheck, RunChecks,
};

use crate::git::{GitHandlers, Guard, TreeRequest, WorkTree};
use crate::machine;
use crate::process::{Environment, Finished, Limits, Runner, Spec, Supervisor};

use passed::{CheckedContent, PassedChecks};
pub(crate) use setup::SetUp;

/// The default timeout of a check.
const DEFAULT_TIMEOUT: Duration = Duration::from_mins(10);

/// The timeout of a check before the work begins.
const PRECHECK_TIMEOUT: Duration = Duration::from_secs(10);
/// The time after which no further check starts before the work begins.
const PRECHECKS_TIMEOUT: Duration = Duration::from_secs(20);

/// The limit of reverted files to list before a check.
const MAX_LISTED_FILES: usize = 20;

/// The purpose of running checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// To decide: stops at the first failure.
    Gates,
    /// To find the checks that pass without any work.
    Precheck,
}

/// Checks to run, and what they are run on.
#[derive(Clone, Copy)]
struct CheckRun<'a> {
    mode: Mode,
    input: &'a ChecksInput,
    attempt: &'a Attempt,
    content: &'a CheckedContent,
}

/// The variable with the directory of held-out checks, set for these checks only.
pub(crate) const HELD_OUT_VARIABLE: &str = "LONGHAUL_HIDDEN";

const REMEDY: &str = "Checks and set-up scripts are run by `sh`: install it, or add it to PATH.";

/// Runs checks and set-up scripts.
#[derive(Debug, Clone)]
pub struct ChecksHandler {
    setup: SetUp,
    passed: PassedChecks,
}

impl ChecksHandler {
    /// A handler that keeps its logs in a data directory, which must exist.
    pub fn new(data_dir: impl AsRef<Path>, supervisor: Supervisor, git: GitHandlers) -> Self {
        let setup = SetUp { runner: Runner::new(data_dir, supervisor), git };
        Self { setup, passed: PassedChecks::default() }
    }

    async fn check(
        &self,
        input: &ChecksInput,
        check: &Check,
        tree: &Path,
        commit: &str,
        attempt: &Attempt,
    ) -> Result<Evidence, Failure> {
        let mut env = Environment::chosen(&input.pass_env)
            .with("LONGHAUL_FEATURE_ID", input.feature.as_str())
            .with("LONGHAUL_COMMIT", commit);
        let mut held_out = None;
        if check.hidden {
            let (directory, digest) = self.held_out(input, check).await?;
            env = env.with(HELD_OUT_VARIABLE, directory);
            held_out = Some(HeldOut { digest, message: check.message.clone() });
        }
        let sandbox =
            self.setup.sandbox(&input.project, tree, &env, &input.confinement, check.hidden)?;
        let spec = Spec {
            name: check.name.clone(),
            program: "sh".into(),
            args: vec!["-c".into(), check.run.clone().into()],
            directory: tree.to_owned(),
            env,
            input: None,
            sandbox,
            limits: Limits {
                total: Some(check.timeout_seconds.map_or(DEFAULT_TIMEOUT, Duration::from_secs)),
                silence: None,
            },
            remedy: REMEDY,
        };
        let finished = self.setup.runner.run(&spec, attempt).await?;
        refuse_full_disk(&spec, &finished)?;
        Ok(Evidence { held_out, ..evidence(&check.name, &check.run, commit, finished) })
    }

    /// The directory of held-out checks, and the digest of its current content.
    async fn held_out(
        &self,
        input: &ChecksInput,
        check: &Check,
    ) -> Result<(PathBuf, String), Failure> {
        let Some(named) = input.confinement.held_out.clone() else {
            return Err(Failure::terminal(format!(
                "the check `{}` is hidden: name the directory with its files as `hidden_checks` \
                 under [project] in longhaul.toml",
                check.name
            )));
        };
        let root = self.setup.git.root_of(&input.project);
        let read = tokio::task::spawn_blocking(move || {
            let directory = held_out::directory(&root, &named)?;
            let digest = held_out::digest(&directory)?;
            Ok((directory, digest))
        });
        read.await.unwrap_or_else(|error| {
            Err(Failure::retryable(format!("the held-out checks were not read: {error}")))
        })
    }
}

#[async_trait]
impl Handler<RunChecks> for ChecksHandler {
    async fn perform(
        &self,
        input: ChecksInput,
        attempt: &Attempt,
    ) -> Result<ChecksReport, Failure> {
        self.run_all(&input, attempt, Mode::Gates).await
    }
}

#[async_trait]
impl Handler<Precheck> for ChecksHandler {
    async fn perform(
        &self,
        mut input: ChecksInput,
        attempt: &Attempt,
    ) -> Result<ChecksReport, Failure> {
        for check in &mut input.checks {
            let timeout = check.timeout_seconds.unwrap_or(u64::MAX);
            check.timeout_seconds = Some(timeout.min(PRECHECK_TIMEOUT.as_secs()));
        }
        self.run_all(&input, attempt, Mode::Precheck).await
    }
}

impl ChecksHandler {
    async fn run_all(
        &self,
        input: &ChecksInput,
        attempt: &Attempt,
        mode: Mode,
    ) -> Result<ChecksReport, Failure> {
        let mut report = ChecksReport { evidence: Vec::new() };
        if input.checks.is_empty() {
            return Ok(report);
        }
        let wanted = TreeRequest {
            project: &input.project,
            feature: &input.feature,
            tree: input.tree,
            commit: Some(&input.commit),
            attempt,
        };
        let content = CheckedContent::of(&self.setup.git, input).await?;
        let known = |check: &&Check| {
            self.passed.find(&content, check).filter(|_| !input.repeat && mode == Mode::Gates)
        };
        // Held-out checks last: the code under test could leave their files in the tree for others.
        let mut checks: Vec<&Check> = input.checks.iter().collect();
        checks.sort_by_key(|check| check.hidden);
        let reused: Vec<Evidence> = checks.iter().filter_map(known).collect();
        if reused.len() == checks.len() {
            return Ok(ChecksReport { evidence: reused });
        }
        let left = if reused.is_empty() {
            None
        } else {
            self.setup.git.gates_tree_as_left(&wanted, &content.content).await?
        };
        let run = CheckRun { mode, input, attempt, content: &content };
        if let Some(tree) = left {
            checks.retain(|check| known(check).is_none());
            report.evidence = reused;
            self.run_in(&tree, run, &checks, &mut report).await?;
            return Ok(report);
        }
        // An idempotent call runs again after a crash: the processes of the lost one must not
        // disturb it.
        self.setup.runner.end_call(&attempt.key()).await?;
        let tree = self.setup.git.gates_tree(&wanted, &input.commit).await?;
        report.evidence.extend(self.setup.for_gates(&tree, &wanted, &input.commit).await?);
        self.run_in(&tree, run, &checks, &mut report).await?;
        Ok(report)
    }

    /// Runs checks in a tree that is set up.
    async fn run_in(
        &self,
        tree: &WorkTree,
        run: CheckRun<'_>,
        checks: &[&Check],
        report: &mut ChecksReport,
    ) -> Result<(), Failure> {
        let begun = Instant::now();
        let commit = tree.at()?;
        let guard = tree.guard(&commit, &run.input.protected).await?;
        let is_set_up = report.failed().is_none();
        tree.begin_checks()?;
        for &check in checks {
            let should_continue = match run.mode {
                Mode::Gates => report.failed().is_none(),
                Mode::Precheck => is_set_up && begun.elapsed() < PRECHECKS_TIMEOUT,
            };
            if !should_continue {
                break;
            }
            let put_back = put_back(&guard, check).await?;
            if check.hidden {
                tree.begin_held_out()?;
            }
            let evidence = self.check(run.input, check, tree.path(), &commit, run.attempt).await?;
            let evidence = match run.mode {
                Mode::Gates => {
                    self.passed.keep(run.content, check, &evidence);
                    evidence
                }
                Mode::Precheck => diagnosed(evidence, check, run.input, tree.path(), &guard),
            };
            report.evidence.push(Evidence { put_back, ..evidence });
        }
        if run.mode == Mode::Gates && report.failed().is_none() {
            tree.remember_checks(&run.content.content)?;
        }
        Ok(())
    }
}

/// Restores the protected files before a check, and returns the first of them.
async fn put_back(guard: &Guard<'_>, check: &Check) -> Result<Vec<String>, Failure> {
    let mut files = guard.restore().await?;
    files.truncate(MAX_LISTED_FILES);
    if !files.is_empty() {
        tracing::warn!(check = check.name, files = files.join(", "), "put protected files back");
    }
    Ok(files)
}

/// The evidence of a failed check, with what it needs and no agent can provide.
fn diagnosed(
    evidence: Evidence,
    check: &Check,
    input: &ChecksInput,
    tree: &Path,
    guard: &Guard<'_>,
) -> Evidence {
    if evidence.passed() {
        return evidence;
    }
    let env = Environment::chosen(&input.pass_env);
    let search = env.get("PATH").unwrap_or_default();
    let is_protected = |path: &Path| guard.covers(path);
    let unmet_need = unmet_need::of(&check.run, evidence.exit_code, tree, is_protected, search);
    Evidence { unmet_need, ..evidence }
}

/// A failure on a full disk proves nothing about the work.
fn refuse_full_disk(spec: &Spec, finished: &Finished) -> Result<(), Failure> {
    match machine::full(&spec.directory) {
        Some(cause) if finished.exit_code != Some(0) => {
            let message = format!("{cause}: `{}` failed there ({})", spec.name, finished.ending());
            Err(Failure::machine(message))
        }
        _ => Ok(()),
    }
}

fn evidence(name: &str, command: &str, commit: &str, finished: Finished) -> Evidence {
    Evidence {
        name: name.to_owned(),
        command: command.to_owned(),
        commit: commit.to_owned(),
        exit_code: finished.exit_code,
        ended_by: finished.ended_by,
        duration_ms: u64::try_from(finished.duration.as_millis()).unwrap_or(u64::MAX),
        output_digest: finished.output_digest,
        output_tail: finished.output_tail,
        log: finished.log,
        reused: false,
        held_out: None,
        put_back: Vec::new(),
        is_setup: false,
        unmet_need: None,
    }
}
