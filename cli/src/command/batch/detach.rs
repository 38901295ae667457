//! Detached batches: handed to the process that runs the log, or to a new one in the background.

use std::ffi::OsString;
use std::fs::{self, File};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use longhaul_activities::process::start_in_background;
use schemars::JsonSchema;
use serde::Serialize;

use crate::arguments::{Batch, Output};
use crate::command::is_gone;
use crate::document;
use crate::exit::Exit;
use crate::term;
use longhaul_server::Client;

use super::{BatchRequest, submit, wait};

/// A batch that a process in the background runs.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::command) struct DetachedDocument {
    /// The id of the batch.
    batch: String,
    /// The number of projects in the file.
    projects: usize,
    /// The new process; absent: the process that ran the log already.
    process: Option<u32>,
    /// The file with the progress and the report of a new process.
    log: Option<String>,
}

/// Time limit for a new process to accept the batch.
const ACCEPT_TIMEOUT: Duration = Duration::from_secs(30);

pub(super) async fn run(data_dir: &Path, arguments: &Batch, batch: &BatchRequest) -> Result<Exit> {
    if let Some(access) = Client::reach_owner(data_dir, term::notice).await? {
        match submit(&access, batch).await {
            Ok(_) => {
                term::say("the Longhaul process that runs this log continues it");
                return report(arguments, batch, None, None);
            }
            // The owner is exiting, so a new process must take the batch.
            Err(error) if is_gone(&error) => {}
            Err(error) => return Err(error),
        }
    }
    longhaul_storage::private_directory(data_dir)?;
    let directory = data_dir.join("batches");
    fs::create_dir_all(&directory)
        .with_context(|| format!("cannot make {}", directory.display()))?;
    let path = directory.join(format!("{}.log", batch.id));
    let log = File::options().create(true).append(true).open(&path);
    let log = log.with_context(|| format!("cannot write {}", path.display()))?;
    let file = std::path::absolute(arguments.file()?).context("cannot tell where the file is")?;
    let limits = &arguments.limits;
    let numbers = [("--max-agents", limits.agents), ("--max-checks", limits.checks)];
    let numbers = numbers.into_iter().filter_map(|(name, number)| Some((name, number?)));
    let mut args: Vec<OsString> =
        vec!["--data-dir".into(), data_dir.into(), "batch".into(), file.into(), "--wait".into()];
    args.extend(numbers.flat_map(|(name, number)| [name.into(), number.to_string().into()]));
    if let Some(junit) = &arguments.junit {
        args.extend(["--junit".into(), std::path::absolute(junit)?.into()]);
    }
    args.extend(["--progress".into(), "jsonl".into(), "--output".into(), "json".into()]);
    let mut process =
        start_in_background(&args, &log).context("cannot start a process in the background")?;
    let deadline = Instant::now() + ACCEPT_TIMEOUT;
    while Instant::now() < deadline {
        if let Some(access) = Client::at_owner(data_dir, term::notice).await
            && wait::now(&access, &batch.id).await.is_ok()
        {
            let id = &batch.id;
            let log = path.display();
            term::say(format!("batch {id}: process {} runs it and writes to {log}", process.id()));
            return report(arguments, batch, Some(process.id()), Some(log.to_string()));
        }
        if process.try_wait()?.is_some() {
            break;
        }
        // A process that starts announces nothing before it listens.
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Err(anyhow::anyhow!(
        "the process in the background did not accept the batch: see {}",
        path.display()
    ))
}

fn report(
    arguments: &Batch,
    batch: &BatchRequest,
    process: Option<u32>,
    log: Option<String>,
) -> Result<Exit> {
    if arguments.output == Output::Json {
        let projects = batch.plan.projects.len();
        document::print(DetachedDocument { batch: batch.id.clone(), projects, process, log })?;
    }
    Ok(Exit::Ok)
}
