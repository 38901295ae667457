//! `longhaul batch`: many projects under one id.

mod detach;
mod file;
mod junit;
mod progress;
mod report;
mod settled;
mod wait;

use std::path::Path;

use anyhow::{Context, Result};
use longhaul_workflows::batch::Plan;

use crate::arguments::{Batch, BatchCommand, BatchOf, Output};
use crate::document;
use crate::exit::{Exit, usage};
use crate::term;
use longhaul_server::{Client, SubmitBatch, Submitted};

use super::terminal::counted;
use progress::Changes;

pub(super) use detach::DetachedDocument;
pub(super) use progress::ProgressLine;
pub(super) use report::Report;

/// The content of a batch file.
pub(super) struct BatchRequest {
    pub(super) id: String,
    pub(super) plan: Plan,
    /// The absolute path of the file.
    pub(super) file: Option<String>,
}

pub(super) async fn run(data_dir: &Path, arguments: &Batch) -> Result<Exit> {
    if let Some(BatchCommand::Status(status)) = &arguments.command {
        return self::status(data_dir, status).await;
    }
    let file = arguments.file()?;
    let mut batch = file::read(file).await?;
    let path = file.canonicalize().with_context(|| format!("cannot find {}", file.display()))?;
    batch.file = Some(path.to_string_lossy().into_owned());
    if arguments.detach {
        return detach::run(data_dir, arguments, &batch).await;
    }
    let mut changes = Changes::new(arguments.progress, batch.plan.projects.len());
    let limits = &arguments.limits;
    let collect_results = arguments.junit.is_some();
    let done = wait::until_done(data_dir, limits, &batch, &mut changes, collect_results).await?;
    let Some((done, details)) = done else {
        term::say("stopped; nothing is lost: the same command continues");
        return Ok(Exit::Suspended);
    };
    let report = Report::new(&batch.id, done);
    if let Some(path) = &arguments.junit {
        let xml = junit::xml(&report, &details)?;
        std::fs::write(path, xml).with_context(|| format!("cannot write {}", path.display()))?;
    }
    match arguments.output {
        // The report is the last line of the JSON lines, so that programs can parse one stream.
        _ if changes.is_json() => document::print_line(&report)?,
        output => print(&report, output)?,
    }
    Ok(report.exit())
}

/// Shows the current states of the projects of a batch.
async fn status(data_dir: &Path, status: &BatchOf) -> Result<Exit> {
    let done = wait::now(&super::reach(data_dir).await?, &status.id).await?;
    let report = Report::new(&status.id, done);
    print(&report, status.output)?;
    Ok(Exit::Ok)
}

fn print(report: &Report, output: Output) -> Result<()> {
    match output {
        Output::Json => document::print(report)?,
        Output::Table => term::print(report.table()),
    }
    Ok(())
}

/// Submits the batch and returns the id of the submission.
async fn submit(access: &Client, batch: &BatchRequest) -> Result<String> {
    let submit =
        SubmitBatch { batch: batch.id.clone(), plan: batch.plan.clone(), file: batch.file.clone() };
    let Submitted { submission, already_known } = super::call(access, submit).await?;
    let id = &batch.id;
    let all = batch.plan.projects.len();
    term::say(match already_known {
        None => format!("batch {id}: {}", counted(all as u64, "project")),
        Some(known) if known < all => {
            format!("batch {id} is known: joined it, {} of {all} projects are new", all - known)
        }
        Some(_) => format!("batch {id} is known: joined it, nothing is started twice"),
    });
    Ok(submission)
}

/// The run id of a batch.
fn run_of(batch: &str) -> Result<longhaul_engine::RunId> {
    longhaul_workflows::batch::BatchWorkflow::run_id(batch).map_err(usage)
}
