//! Unneeded work trees in the data directory.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::Finding;
use crate::command::maintenance::{counted, send};
use crate::term;
use longhaul_server::{Client, InspectPages, Pages, Unfinished, UnfinishedRuns, UnusedPayloads};

pub(super) async fn look(data_dir: &Path, fix: bool) -> Vec<Finding> {
    let trees = trees(data_dir);
    let (unfinished, resumable) = match unfinished(data_dir).await {
        Ok(known) => known,
        Err(error) => {
            let advice = "run `longhaul check --repair`: it makes a log of what can be read; \
                  or restore a backup";
            return vec![Finding::problem("log", format!("{error:#}"), advice)];
        }
    };
    let mut findings = pages(data_dir, fix).await;
    if !findings.iter().any(Finding::is_problem) {
        findings.push(Finding::ok(
            "log",
            format!("can be read; {} not over", counted(unfinished.len() as u64, "run")),
        ));
    }
    for (owner, tree) in trees {
        // The run of a feature is `project/feature/number`. A feature that is resumed needs its
        // work tree.
        let needed = resumable.contains(&owner)
            || unfinished.iter().any(|run| *run == owner || run.starts_with(&format!("{owner}/")));
        if !needed {
            let shown = tree.display();
            let what = format!(
                "{shown} belongs to no feature that can be resumed; it may contain uncommitted work"
            );
            findings.push(Finding::warning(
                "work tree",
                what,
                format!("look at it, then: rm -r '{shown}'"),
            ));
        }
    }
    findings
}

/// The work trees, each with the run id or the prefix of the run ids that it belongs to.
fn trees(data_dir: &Path) -> Vec<(String, PathBuf)> {
    let entries = |path: &Path| -> Vec<PathBuf> {
        let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect()
    };
    let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut found = Vec::new();
    for project in entries(&data_dir.join("worktrees")) {
        for tree in entries(&project) {
            // Trees of gates and of merged results, which no feature can be named after: no agent
            // works there.
            if !name(&tree).starts_with('.') {
                found.push((format!("{}/{}", name(&project), name(&tree)), tree));
            }
        }
    }
    found.sort_unstable();
    found
}

/// Unreadable records on damaged pages of the log, and unreferenced payloads.
async fn pages(data_dir: &Path, fix: bool) -> Vec<Finding> {
    let Ok(Some(access)) = Client::reach(data_dir, term::notice).await else { return Vec::new() };
    let Ok(Pages { unreadable, unused }) = send(access, InspectPages { sweep: fix }).await else {
        return Vec::new();
    };
    let advice = "run `longhaul check --repair`: it makes a log of what can be read; \
                  or restore a backup";
    let mut findings: Vec<_> =
        unreadable.into_iter().map(|what| Finding::problem("log", what, advice)).collect();
    if let Some(UnusedPayloads { files, bytes }) = unused.filter(|unused| unused.files > 0) {
        let what =
            format!("{} of {bytes} bytes that no record names", counted(files, "payload file"));
        findings.push(Finding::warning("payloads", what, "remove them").or_fix(fix, || Ok(())));
    }
    findings
}

/// The open runs and the features that have not passed.
async fn unfinished(data_dir: &Path) -> anyhow::Result<(BTreeSet<String>, BTreeSet<String>)> {
    let Some(access) = Client::reach(data_dir, term::notice).await? else {
        return Ok(Default::default());
    };
    let UnfinishedRuns { runs, resumable } = send(access, Unfinished {}).await?;
    Ok((runs.into_iter().map(|run| run.to_string()).collect(), resumable.into_iter().collect()))
}
