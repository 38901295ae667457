//! The overhead of Longhaul over an agent: a project of small features, compared with an equivalent
//! shell script.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Stdio;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use schemars::JsonSchema;
use serde::Serialize;

/// Features of the project.
const FEATURES: usize = 20;

/// The overhead of a feature over the work of its agent.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Overhead {
    /// Features, worked on one after the other.
    pub(super) features: usize,
    /// The wall time of `longhaul run` for all of them.
    pub(super) longhaul_seconds: f64,
    /// The wall time of the shell script for all of them.
    pub(super) script_seconds: f64,
}

impl Overhead {
    pub(super) fn milliseconds_each(&self, seconds: f64) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
        let features = self.features.max(1) as f64;
        seconds * 1000.0 / features
    }
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
    let (ours, theirs) = (directory.join("ours"), directory.join("theirs"));
    for root in [&ours, &theirs] {
        prepare(root, &ids).await?;
    }
    let mut script = tokio::process::Command::new("sh");
    script.args(["-c", SCRIPT, "sh"]).args(&ids).current_dir(&theirs);
    let script_seconds = timed(script).await.context("the shell script failed")?;
    let program = std::env::current_exe().context("cannot find this program to start it again")?;
    let mut longhaul = tokio::process::Command::new(program);
    longhaul.arg("run").arg(&ours).arg("--data-dir").arg(directory.join("data"));
    let longhaul_seconds = timed(longhaul).await.context("`longhaul run` failed")?;
    Ok(Overhead { features, longhaul_seconds, script_seconds })
}

/// A repository whose features each need a file of their own.
async fn prepare(root: &Path, ids: &[String]) -> Result<()> {
    fs::create_dir_all(root)?;
    let feature = |id: &String| serde_json::json!({ "id": id, "name": id, "checks": [format!("test -s {id}.txt")] });
    let list = serde_json::json!({ "features": ids.iter().map(feature).collect::<Vec<_>>() });
    let settings = "[project]\nparallel = 1\n[agent]\ncommand = [\"./agent.sh\"]\n[merge]\nregression = \"none\"\n";
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
    let git = "git init -q -b main && git config user.name Bench && git config user.email bench@example.org && \
               git add --all && git commit -q -m Begin";
    let mut command = tokio::process::Command::new("sh");
    command.args(["-c", git]).current_dir(root);
    timed(command).await.context("git could not make a repository").map(drop)
}

async fn timed(mut command: tokio::process::Command) -> Result<f64> {
    let begun = Instant::now();
    let command = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    let output = command.output().await?;
    if !output.status.success() {
        bail!("{}: {}", output.status, String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(begun.elapsed().as_secs_f64())
}
