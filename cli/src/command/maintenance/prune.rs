//! `longhaul prune`.

use std::path::Path;

use anyhow::Result;
use chrono::{SecondsFormat, Utc};
use longhaul_storage::Scope;
use schemars::JsonSchema;
use serde::Serialize;

use super::{below, counted, send};
use crate::arguments::{Output, Prune};
use crate::command::{confirmed, reach, terminal};
use crate::document;
use crate::exit::Exit;
use crate::term;
use longhaul_server::{Client, Pruned, PrunedRun};

/// The pruned runs.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::command) struct PruneDocument {
    /// Whether it was a dry run.
    dry_run: bool,
    /// The runs, with their states.
    runs: Vec<PrunedRun>,
    /// How many files of large payloads were removed.
    files: u64,
    /// The size of these files.
    bytes: u64,
    /// The current size of the log's own files.
    log_bytes: u64,
    /// Their size before.
    log_bytes_before: u64,
    /// Whether the log shrinks only when it is opened next, because a process has it open.
    shrinks_later: bool,
    /// The error that stopped it, if any.
    problem: Option<String>,
}

pub(crate) async fn run(data_dir: &Path, arguments: &Prune) -> Result<Exit> {
    let access = reach(data_dir).await?;
    let in_use = matches!(access, Client::Remote(_));
    let log = data_dir.join("log");
    let before = size(&log);
    let scope = match &arguments.project {
        Some(project) => below(&access, project).await?,
        None => Scope::All,
    };
    let statuses = arguments.status.iter().map(|status| status.state());
    let ended_before = Utc::now().checked_sub_signed(arguments.older_than).unwrap_or_default();
    let dry_run = arguments.dry_run;
    let statuses = statuses.collect();
    let prune = longhaul_server::Prune { scope, ended_before, statuses, dry_run };
    let access =
        if dry_run || arguments.yes { access } else { confirm(access, &prune, data_dir).await? };
    let Pruned { runs, files, bytes, problem } = send(access, prune).await?;
    let shrinks = !dry_run && !runs.is_empty();
    if shrinks && !in_use {
        // A pruned log is rewritten when it is opened.
        drop(reach(data_dir).await?);
    }
    let log_bytes = size(&log);
    let log_bytes_before = before;
    let shrinks_later = shrinks && in_use;
    match arguments.output {
        Output::Json => {
            let runs = runs.clone();
            let problem = problem.clone();
            document::print(PruneDocument {
                dry_run,
                runs,
                files,
                bytes,
                log_bytes,
                log_bytes_before,
                shrinks_later,
                problem,
            })?;
        }
        Output::Table => show(&runs, dry_run),
    }
    let word = if dry_run { "would be pruned" } else { "pruned" };
    let freed = if dry_run {
        String::new()
    } else {
        format!("; {} and {bytes} bytes of large payloads removed", counted(files, "file"))
    };
    term::say(format!("{} {word}{freed}", counted(runs.len() as u64, "run")));
    if shrinks_later {
        term::say(
            "the log itself gets smaller when it is opened next, after the process that runs it \
             has ended",
        );
    } else if shrinks {
        term::say(format!("the log itself took {before} bytes, {log_bytes} bytes now"));
    }
    if let Some(problem) = problem {
        term::say(format!("longhaul: {problem}"));
        return Ok(Exit::Operational);
    }
    Ok(Exit::Ok)
}

/// Asks for confirmation of several runs. A person may take long, which must not block other
/// commands, so the log is closed meanwhile.
async fn confirm(
    access: Client,
    prune: &longhaul_server::Prune,
    data_dir: &Path,
) -> Result<Client> {
    let dry_run = longhaul_server::Prune { dry_run: true, ..prune.clone() };
    let count = send(access, dry_run).await?.runs.len();
    if count > 1 {
        let runs = counted(count as u64, "run");
        confirmed(&format!("drop the histories of {runs}"), &format!("{runs} would be pruned"))?;
    }
    reach(data_dir).await
}

/// The size of the files below a directory.
fn size(path: &Path) -> u64 {
    let mut folders = vec![path.to_owned()];
    let mut size = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            match entry.metadata() {
                Ok(metadata) if metadata.is_dir() => folders.push(entry.path()),
                Ok(metadata) => size += std::os::unix::fs::MetadataExt::blocks(&metadata) * 512,
                Err(_) => {}
            }
        }
    }
    size
}

fn show(runs: &[PrunedRun], dry_run: bool) {
    for PrunedRun { run, status, ended_at, events } in runs {
        let ended =
            ended_at.map(|at| at.to_rfc3339_opts(SecondsFormat::Secs, true)).unwrap_or_default();
        let gone = match events {
            Some(events) if !dry_run => format!("{} gone", counted(*events, "event")),
            _ => "would be pruned".to_owned(),
        };
        terminal::print(format!("{run}  {status} {ended}  {gone}"));
    }
}
