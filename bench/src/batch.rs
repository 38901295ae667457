//! How well many small projects keep a few agents busy.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::process::Command;

use super::feature::{commit_all, finish};
use super::machine;
use super::target::Target;

const PROJECTS: usize = 40;
const FEATURES: usize = 5;
const AGENTS: usize = 8;

/// The figures of a batch of small projects whose agents take one second.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub(super) struct Batch {
    pub(super) projects: usize,
    /// Features of each project.
    pub(super) features: usize,
    /// The most agents at once.
    pub(super) agents: usize,
    /// The wall time.
    pub(super) seconds: f64,
    /// The CPU time of all processes for one feature.
    pub(super) cpu_ms: f64,
    /// The mean number of agents at work, from the begin of the first session to that of the last.
    pub(super) busy_agents: f64,
    /// The mean time of a feature from its work tree to its end, in seconds.
    pub(super) seconds_in_system: f64,
    /// The part of it before its session.
    pub(super) seconds_before_session: f64,
}

impl Batch {
    pub(super) fn targets(&self) -> [Target; 2] {
        [
            Target::at_least("of 8 agents of a batch at work", self.busy_agents, 6.0),
            Target::at_most(
                "seconds from the work tree of a feature of the batch to its end",
                self.seconds_in_system,
                4.0,
            ),
        ]
    }

    pub(super) fn line(&self) -> String {
        format!(
            "{} projects of {} features in {:.1} s: {:.1} of {} agents at work; a feature takes \
             {:.1} s from its work tree on, {:.1} s of it before its session, and {:.0} ms of CPU",
            self.projects,
            self.features,
            self.seconds,
            self.busy_agents,
            self.agents,
            self.seconds_in_system,
            self.seconds_before_session,
            self.cpu_ms,
        )
    }
}

/// Writes when its work tree was made, and when its work began and ended.
const AGENT: &str = "#!/bin/sh\nbegun=$(date +%s.%N)\nsleep 1\n\
                     echo \"$(stat -c %.9W .) $begun $(date +%s.%N)\" \
                     >\"$LONGHAUL_FEATURE_ID.txt\"\n";

/// The times of one feature, in seconds since 1970.
struct Times {
    opened: f64,
    begun: f64,
    ended: f64,
    passed: f64,
}

/// The part of `longhaul list -o json` that is read.
#[derive(Deserialize)]
struct List {
    runs: Vec<Run>,
}

#[derive(Deserialize)]
struct Run {
    project: String,
    feature: String,
    ended_at: DateTime<Utc>,
}

pub(super) async fn measure(directory: &Path, scale: usize) -> Result<Batch> {
    let projects = (PROJECTS / scale).max(AGENTS);
    let program = std::env::current_exe().context("cannot find this program to start it again")?;
    for number in 0..projects {
        prepare(&directory.join(project(number))).await?;
    }
    let plan = (0..projects).map(|number| format!("[[project]]\ndir = \"{}\"\n", project(number)));
    let file = directory.join("batch.toml");
    fs::write(&file, format!("batch = \"bench\"\n{}", plan.collect::<String>()))?;
    let data = directory.join("data");
    let begun = Instant::now();
    let used = machine::cpu_of_children()?;
    let mut batch = Command::new(&program);
    batch.arg("batch").arg(&file).arg("--data-dir").arg(&data);
    batch.args(["--progress", "none", "--max-agents", &AGENTS.to_string()]);
    finish(batch).await.context("`longhaul batch` failed")?;
    let seconds = begun.elapsed().as_secs_f64();
    let cpu = machine::cpu_of_children()?.saturating_sub(used).as_secs_f64();
    let mut list = Command::new(&program);
    list.args(["list", "--kind", "feature", "--status", "passed", "--limit", "100000"]);
    list.args(["-o", "json"]).arg("--data-dir").arg(&data);
    let list: List = serde_json::from_slice(&finish(list).await?.stdout)?;
    let times: Vec<Times> =
        list.runs.iter().map(|run| times(directory, run)).collect::<Result<_>>()?;
    ensure!(times.len() == projects * FEATURES, "only {} features passed", times.len());
    Ok(Batch { projects, features: FEATURES, agents: AGENTS, seconds, ..figures(&times, cpu) })
}

fn project(number: usize) -> String {
    format!("project-{number:02}")
}

/// The figures that follow from the times of all features.
fn figures(times: &[Times], cpu: f64) -> Batch {
    let begins = || times.iter().map(|it| it.begun);
    let first = begins().fold(f64::INFINITY, f64::min);
    let last = begins().fold(f64::NEG_INFINITY, f64::max);
    let work = times.iter().map(|it| it.ended.min(last) - it.begun).sum::<f64>();
    #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
    let mean = |of: fn(&Times) -> f64| times.iter().map(of).sum::<f64>() / times.len() as f64;
    Batch {
        busy_agents: work / (last - first).max(f64::MIN_POSITIVE),
        #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
        cpu_ms: cpu * 1000.0 / times.len() as f64,
        seconds_in_system: mean(|it| it.passed - it.opened),
        seconds_before_session: mean(|it| it.begun - it.opened),
        ..Batch::default()
    }
}

fn times(directory: &Path, run: &Run) -> Result<Times> {
    // A digest of the path follows the name in the id of a project.
    let project = run.project.get(..project(0).len()).context("a project of another batch")?;
    let path = directory.join(project).join(format!("{}.txt", run.feature));
    let text = fs::read_to_string(&path).with_context(|| format!("no {}", path.display()))?;
    let read: Vec<f64> =
        text.split_whitespace().map(str::parse).collect::<Result<_, _>>().context(text.clone())?;
    let [opened, begun, ended] = read[..] else { anyhow::bail!("not three times: {text}") };
    #[expect(clippy::cast_precision_loss, reason = "milliseconds are precise enough")]
    let passed = run.ended_at.timestamp_millis() as f64 / 1000.0;
    Ok(Times { opened, begun, ended, passed })
}

/// A repository whose features each need a file of their own.
async fn prepare(root: &Path) -> Result<()> {
    fs::create_dir_all(root)?;
    let ids = (0..FEATURES).map(|number| format!("feature-{number}"));
    let feature = |id: String| {
        let check = format!("test -s {id}.txt");
        serde_json::json!({ "id": id, "name": id, "checks": [check] })
    };
    let list = serde_json::json!({ "features": ids.map(feature).collect::<Vec<_>>() });
    fs::write(root.join("feature_list.json"), list.to_string())?;
    fs::write(root.join("longhaul.toml"), "[agent]\ncommand = [\"./agent.sh\"]\n")?;
    fs::write(root.join("agent.sh"), AGENT)?;
    fs::set_permissions(root.join("agent.sh"), fs::Permissions::from_mode(0o755))?;
    for number in 0..20 {
        fs::write(root.join(format!("{number}.txt")), "four kilobytes\n".repeat(273))?;
    }
    commit_all(root).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_count_as_busy_until_the_last_session_begins() {
        let times = [(0.0, 1.0, 3.0, 4.0), (1.0, 2.0, 4.0, 5.0), (3.0, 5.0, 6.0, 8.0)];
        let times =
            times.map(|(opened, begun, ended, passed)| Times { opened, begun, ended, passed });
        let batch = figures(&times, 3.0);
        assert!((batch.busy_agents - 1.0).abs() < 1e-9, "{batch:?}");
        assert!((batch.seconds_in_system - 13.0 / 3.0).abs() < 1e-9, "{batch:?}");
        assert!((batch.seconds_before_session - 4.0 / 3.0).abs() < 1e-9, "{batch:?}");
        assert!((batch.cpu_ms - 1000.0).abs() < 1e-9, "{batch:?}");
    }
}
