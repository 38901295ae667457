//! The project's set-up script: as a step of its own, and in recreated work trees.

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use async_trait::async_trait;
use longhaul_engine::{Attempt, Failure, Handler};
use longhaul_workflows::contracts::{Evidence, ProjectRef, RunSetup, SetupInput, SetupReport};
use longhaul_workflows::settings::Confinement;

use crate::confine::{ConfinedPaths, sandbox};
use crate::files::files_lock;
use crate::git::{GitHandlers, TreeRequest, WorkTree};
use crate::longhaul_toml::settings;
use crate::process::{Environment, Limits, Runner, Sandbox, Spec};

use super::{ChecksHandler, REMEDY, evidence, refuse_full_disk};

/// Prepares work trees for an agent or a check.
#[derive(Debug, Clone)]
pub(crate) struct SetUp {
    pub(crate) runner: Runner,
    pub(crate) git: GitHandlers,
}

/// A set-up script and its inputs.
struct Script<'a> {
    /// Relative to the work tree.
    path: &'a str,
    timeout: Duration,
    pass_env: &'a [String],
    confinement: &'a Confinement,
}

#[async_trait]
impl Handler<RunSetup> for ChecksHandler {
    async fn perform(&self, input: SetupInput, attempt: &Attempt) -> Result<SetupReport, Failure> {
        self.setup.runner.end_call(&attempt.key()).await?;
        let wanted = TreeRequest {
            project: &input.project,
            feature: &input.feature,
            tree: input.tree,
            commit: input.commit.as_deref(),
            attempt,
        };
        let tree = self.setup.git.work_tree(&wanted).await?;
        let timeout = Duration::from_secs(input.timeout_seconds);
        let script = Script {
            path: &input.script,
            timeout,
            pass_env: &input.pass_env,
            confinement: &input.confinement,
        };
        let evidence = self.setup.run(&script, &wanted, &tree).await?;
        // The agent learns of a failure; the script does not run again before the session.
        tree.end_setup(Some(&tree.at()?))?;
        Ok(SetupReport { evidence })
    }
}

impl SetUp {
    /// An existing work tree, set up. A recreated one, for a fork or after a move, lacks all files
    /// that git does not track.
    pub(crate) async fn work_tree(&self, wanted: &TreeRequest<'_>) -> Result<WorkTree, Failure> {
        let tree = self.git.work_tree(wanted).await?;
        if tree.is_set_up(None)? {
            return Ok(tree);
        }
        let head = tree.at()?;
        let failed = self.set_up(&tree, wanted, &head).await?.filter(|evidence| !evidence.passed());
        // Unignored files from the script must not count as the agent's work.
        tree.reset(&head).await?;
        if let Some(failed) = &failed {
            // The next step tries it again.
            let path = tree.path().display();
            tracing::warn!(
                tree = %path,
                log = failed.log,
                "the set-up of a work tree failed: {}",
                failed.ending(),
            );
        }
        Ok(tree)
    }

    /// Sets up a gates tree for a commit, which may need other packages than the last one. Returns
    /// the evidence of a failure: checks would prove little then.
    pub(super) async fn for_gates(
        &self,
        tree: &WorkTree,
        wanted: &TreeRequest<'_>,
        commit: &str,
    ) -> Result<Option<Evidence>, Failure> {
        if tree.is_set_up(Some(commit))? {
            return Ok(None);
        }
        Ok(self.set_up(tree, wanted, commit).await?.filter(|evidence| !evidence.passed()))
    }

    /// Runs the script of the project's current settings.
    async fn set_up(
        &self,
        tree: &WorkTree,
        wanted: &TreeRequest<'_>,
        commit: &str,
    ) -> Result<Option<Evidence>, Failure> {
        let root = self.git.root_of(wanted.project);
        // Waits for moves of the checkout to end.
        let settings = {
            let lock = files_lock(&root);
            let _mine = lock.lock().await;
            settings(&root)
        };
        let (project, confinement) = match settings {
            Ok(settings) => (settings.project.clone(), settings.gate_confinement()),
            Err(failure) => {
                tracing::warn!(
                    tree = %tree.path().display(),
                    %failure,
                    "a new work tree is not set up",
                );
                return Ok(None);
            }
        };
        let timeout = project.setup_timeout.duration();
        let script = Script {
            path: &project.setup,
            timeout,
            pass_env: &project.pass_env,
            confinement: &confinement,
        };
        let evidence = self.run(&script, wanted, tree).await?;
        let succeeded = evidence.as_ref().is_none_or(Evidence::passed);
        tree.end_setup(succeeded.then_some(commit))?;
        Ok(evidence)
    }

    /// The sandbox of a set-up script or a check.
    pub(super) fn sandbox(
        &self,
        project: &ProjectRef,
        tree: &Path,
        env: &Environment,
        confinement: &Confinement,
        sees_held_out: bool,
    ) -> Result<Option<Sandbox>, Failure> {
        let root = self.git.root_of(project);
        let data_dir = self.runner.data_dir();
        let places = ConfinedPaths { root: &root, tree, data_dir, sees_held_out };
        sandbox(&places, None, env, confinement)
    }

    /// Runs the script in a work tree; `None` if there is none.
    async fn run(
        &self,
        script: &Script<'_>,
        wanted: &TreeRequest<'_>,
        tree: &WorkTree,
    ) -> Result<Option<Evidence>, Failure> {
        let Some(file) = find(tree.path(), script.path)? else { return Ok(None) };
        let (command, args) = call(&file, script.path);
        let env = Environment::chosen(script.pass_env)
            .with("LONGHAUL_FEATURE_ID", wanted.feature.as_str());
        let sandbox = self.sandbox(wanted.project, tree.path(), &env, script.confinement, false)?;
        let spec = Spec {
            name: "setup".into(),
            program: "sh".into(),
            args,
            directory: tree.path().to_owned(),
            env,
            input: None,
            sandbox,
            limits: Limits { total: Some(script.timeout), silence: None },
            remedy: REMEDY,
        };
        let commit = tree.at()?;
        tree.begin_setup().await?;
        let finished = self.runner.run(&spec, wanted.attempt).await?;
        refuse_full_disk(&spec, &finished)?;
        let evidence = evidence("setup", &command, &commit, finished);
        Ok(Some(Evidence { is_setup: true, ..evidence }))
    }
}

/// The path of the script, if it exists. Rejects a path that leads out of the work tree, also
/// through a link.
fn find(worktree: &Path, script: &str) -> Result<Option<PathBuf>, Failure> {
    let outside = || {
        let message = format!(
            "the set-up script `{script}` is not inside the work tree {}",
            worktree.display()
        );
        Failure::terminal(format!(
            "{message}: give `[project] setup` in longhaul.toml a path relative to the root"
        ))
    };
    let stays = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
    if !Path::new(script).components().all(stays) {
        return Err(outside());
    }
    let path = worktree.join(script);
    let (Ok(real), Ok(top)) = (path.canonicalize(), worktree.canonicalize()) else {
        return Ok(None);
    };
    if real.starts_with(top) { Ok(real.is_file().then_some(path)) } else { Err(outside()) }
}

/// The command for display, and the arguments of `sh`. The shell starts an executable script too:
/// if that fails, the exit code is 126 or 127 and part of the evidence, because the script belongs
/// to the project.
fn call(path: &Path, script: &str) -> (String, Vec<OsString>) {
    let executable =
        path.metadata().is_ok_and(|metadata| metadata.permissions().mode() & 0o111 != 0);
    if executable {
        (format!("./{script}"), vec!["-c".into(), "exec \"$0\"".into(), path.into()])
    } else {
        (format!("sh {script}"), vec![path.into()])
    }
}
