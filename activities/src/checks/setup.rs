//! The project's set-up script.

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use async_trait::async_trait;
use longhaul_engine::{Attempt, Failure, Handler};
use longhaul_workflows::contracts::{RunSetup, SetupInput, SetupReport};

use crate::git::Wanted;
use crate::process::{Environment, Limits, Spec};

use super::{ChecksHandler, REMEDY, evidence, git};

#[async_trait]
impl Handler<RunSetup> for ChecksHandler {
    async fn perform(&self, input: SetupInput, attempt: &Attempt) -> Result<SetupReport, Failure> {
        self.runner.end_call(&attempt.key()).await?;
        let wanted = Wanted {
            project: &input.project,
            feature: &input.feature,
            worktree: &input.worktree,
            commit: None,
            run: &attempt.run,
        };
        let worktree = self.git.work_tree(&wanted).await?;
        let worktree = Path::new(&worktree);
        let Some(script) = find(worktree, &input.script)? else {
            return Ok(SetupReport { evidence: None });
        };
        let commit = git(worktree, &["rev-parse", "HEAD"]).await?.trim().to_owned();
        let (command, args) = call(&script, &input.script);
        let spec = Spec {
            name: "setup".into(),
            program: "sh".into(),
            args,
            folder: worktree.to_owned(),
            env: Environment::chosen(&input.pass_env).with("LONGHAUL_FEATURE_ID", input.feature.as_str()),
            input: None,
            limits: Limits { total: Some(Duration::from_secs(input.timeout_seconds)), silence: None },
            remedy: REMEDY,
        };
        let finished = self.runner.run(&spec, attempt).await?;
        Ok(SetupReport { evidence: Some(evidence("setup", &command, &commit, finished)) })
    }
}

/// The script, if there is one. Refuses a path that leads out of the work tree, through a link too.
fn find(worktree: &Path, script: &str) -> Result<Option<PathBuf>, Failure> {
    let outside = || {
        let message = format!("the set-up script `{script}` is not inside the work tree {}", worktree.display());
        Failure::terminal(format!("{message}: give `[project] setup` in longhaul.toml a path relative to the root"))
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

/// The command for people, and what `sh` is given. The shell starts an executable script too: if that cannot be done,
/// it is an exit code of 126 or 127 and part of the evidence, for the script is the project's own.
fn call(path: &Path, script: &str) -> (String, Vec<OsString>) {
    let executable = path.metadata().is_ok_and(|metadata| metadata.permissions().mode() & 0o111 != 0);
    if executable {
        (format!("./{script}"), vec!["-c".into(), "exec \"$0\"".into(), path.into()])
    } else {
        (format!("sh {script}"), vec![path.into()])
    }
}
