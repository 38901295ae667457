//! The overhead of Longhaul over an agent: a project of small features, compared with an equivalent
//! shell script.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Output, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use schemars::JsonSchema;
use serde::Serialize;
use tokio::process::Command;

use super::machine;

/// Features of the project.
const FEATURES: usize = 20;

/// The cost of a feature besides the work of its agent.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Overhead {
    /// Features, worked on one after the other.
    pub(super) features: usize,
    /// Of `longhaul run`.
    pub(super) longhaul: Cost,
    /// Of the shell script.
    pub(super) script: Cost,
}

/// The cost of one feature, on average.
#[derive(Debug, Clone, Copy, Default, Serialize, JsonSchema)]
pub(super) struct Cost {
    /// The wall time.
    pub(super) wall_ms: f64,
    /// The CPU time of all processes.
    pub(super) cpu_ms: f64,
    /// The system calls by `strace`; absent if it is not installed.
    pub(super) calls: Option<Calls>,
}

/// Calls of the system for one feature, on average.
#[derive(Debug, Clone, Copy, Default, Serialize, JsonSchema)]
pub(super) struct Calls {
    /// Started git processes.
    pub(super) git_processes: f64,
    /// `fsync`, `fdatasync` and `syncfs`.
    pub(super) syncs: f64,
    /// Those of them that write the event log.
    pub(super) log_syncs: f64,
}

/// Writes a file: the fastest possible agent.
const AGENT: &str = "#!/bin/sh\necho done >\"$LONGHAUL_FEATURE_ID.txt\"\n";

/// The same steps as those of a feature, without a log, syncs or protection.
const SCRIPT: &str = r#"set -e
for id in "$@"; do
    git worktree add -q -b "work/$id" "../trees/$id"
    (
        cd "../trees/$id"
        LONGHAUL_FEATURE_ID=$id ./agent.sh
        git add --all
        git commit -q -m "$id"
        test -s "$id.txt"
    )
    git merge -q --squash "work/$id" >/dev/null
    git commit -q -m "$id"
    test -s "$id.txt"
    git worktree remove --force "../trees/$id"
    git branch -q -D "work/$id"
done
"#;

pub(super) async fn measure(directory: &Path, quick: bool) -> Result<Overhead> {
    let features = if quick { FEATURES / 4 } else { FEATURES };
    let ids: Vec<String> = (0..features).map(|number| format!("feature-{number}")).collect();
    let program = std::env::current_exe().context("cannot find this program to start it again")?;
    let script = |root: &Path| {
        let mut command = Command::new("sh");
        command.args(["-c", SCRIPT, "sh"]).args(&ids).current_dir(root);
        command
    };
    let longhaul = |root: &Path| {
        let mut command = Command::new(&program);
        command.arg("run").arg(root).arg("--data-dir").arg(root.with_extension("data"));
        command
    };
    let script = cost(&directory.join("script"), &ids, script).await;
    let longhaul = cost(&directory.join("longhaul"), &ids, longhaul).await;
    Ok(Overhead {
        features,
        longhaul: longhaul.context("`longhaul run` failed")?,
        script: script.context("the shell script failed")?,
    })
}

/// The cost of a program that works on all features: its times, then its calls in a further run.
async fn cost(
    directory: &Path,
    ids: &[String],
    program: impl Fn(&Path) -> Command,
) -> Result<Cost> {
    #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
    let features = ids.len().max(1) as f64;
    let root = directory.join("timed/project");
    prepare(&root, ids).await?;
    let begun = Instant::now();
    let used = machine::cpu_of_children()?;
    finish(program(&root)).await?;
    let wall = begun.elapsed();
    let cpu = machine::cpu_of_children()?.saturating_sub(used);
    let traced = directory.join("traced/project");
    prepare(&traced, ids).await?;
    let calls = calls(&directory.join("trace"), program(&traced)).await?;
    let each = |count: usize| {
        #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
        let count = count as f64;
        count / features
    };
    Ok(Cost {
        wall_ms: wall.as_secs_f64() * 1000.0 / features,
        cpu_ms: cpu.as_secs_f64() * 1000.0 / features,
        calls: calls.map(|[git, syncs, log]| Calls {
            git_processes: each(git),
            syncs: each(syncs),
            log_syncs: each(log),
        }),
    })
}

/// The git processes, the syncs, and the syncs of the event log of a program and its children;
/// `None` without `strace`.
async fn calls(trace: &Path, program: Command) -> Result<Option<[usize; 3]>> {
    let program = program.as_std();
    let mut traced = Command::new("strace");
    traced.args(["-f", "-qq", "-y", "-e", "trace=execve,fsync,fdatasync,syncfs", "-e"]);
    traced.args(["signal=none", "-o"]).arg(trace).arg(program.get_program());
    traced.args(program.get_args());
    if let Some(directory) = program.get_current_dir() {
        traced.current_dir(directory);
    }
    match finish(traced).await {
        Err(error) if error.downcast_ref::<io::Error>().is_some() => return Ok(None),
        outcome => drop(outcome?),
    }
    let text = fs::read_to_string(trace)?;
    let is_sync =
        |line: &&str| ["fsync(", "fdatasync(", "syncfs("].iter().any(|it| line.contains(it));
    let is_git = |line: &&str| {
        line.contains("execve(\"") && line.contains("/git\", [") && !line.contains("ENOENT")
    };
    let syncs = text.lines().filter(is_sync);
    let log = syncs.clone().filter(|line| line.contains("/log/")).count();
    Ok(Some([text.lines().filter(is_git).count(), syncs.count(), log]))
}

/// A repository whose features each need a file of their own.
async fn prepare(root: &Path, ids: &[String]) -> Result<()> {
    fs::create_dir_all(root)?;
    let feature = |id: &String| {
        let check = format!("test -s {id}.txt");
        serde_json::json!({ "id": id, "name": id, "checks": [check] })
    };
    let list = serde_json::json!({ "features": ids.iter().map(feature).collect::<Vec<_>>() });
    let settings = "[project]\nparallel = 1\n[agent]\ncommand = [\"./agent.sh\"]\n\
                    [merge]\nregression = \"none\"\n";
    for (file, text) in [
        ("feature_list.json", list.to_string()),
        ("longhaul.toml", settings.into()),
        ("agent.sh", AGENT.into()),
    ] {
        fs::write(root.join(file), text)?;
    }
    fs::set_permissions(root.join("agent.sh"), fs::Permissions::from_mode(0o755))?;
    for number in 0..200 {
        let dir = root.join(format!("src/{}", number % 10));
        fs::create_dir_all(&dir)?;
        fs::write(dir.join(format!("{number}.txt")), "four kilobytes\n".repeat(273))?;
    }
    commit_all(root).await
}

/// Makes a repository of a directory.
pub(super) async fn commit_all(root: &Path) -> Result<()> {
    let git = "git init -q -b main && git config user.name Bench && \
               git config user.email bench@example.org && git add --all && git commit -q -m Begin";
    let mut command = Command::new("sh");
    command.args(["-c", git]).current_dir(root);
    finish(command).await.context("git could not make a repository")?;
    Ok(())
}

/// Runs a program to its end, which must be a success.
pub(super) async fn finish(mut command: Command) -> Result<Output> {
    let command = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    let output = command.output().await?;
    if !output.status.success() {
        bail!("{}: {}", output.status, String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(output)
}
