//! Waits for a batch until there is no more progress without a person, as the owner of the log or
//! as a client.

use std::path::Path;

use anyhow::Result;

use crate::arguments::AtOnce;
use crate::command::{call, owner, run};
use crate::term;
use longhaul_server::{BatchStanding, BatchStatus, Client, Service, Watch};

use super::junit::RunDetailsByFeature;
use super::settled::SettledBatch;
use super::{BatchRequest, Changes, junit, submit};

/// Submits a batch and waits for it; with the results of its features for a report, if
/// `collect_results`. `None` if this process is requested to end.
pub(super) async fn until_done(
    data_dir: &Path,
    limits: &AtOnce,
    batch: &BatchRequest,
    changes: &mut Changes,
    collect_results: bool,
) -> Result<Option<(SettledBatch, RunDetailsByFeature)>> {
    let details = async |access: &Client, done: &SettledBatch| {
        if collect_results {
            junit::details(access, &done.standing).await
        } else {
            Ok(RunDetailsByFeature::new())
        }
    };
    let work = async |access: &Client, service: Option<&Service>| {
        let submission = submit(access, batch).await?;
        let Some(service) = service else {
            term::say("another Longhaul process runs this log and the batch");
            owner::change_limits(access, limits).await?;
            let done = watch(access, batch, &submission, changes).await?;
            let details = details(access, &done).await?;
            return Ok((done, details));
        };
        let mut others = run::OwnerWork::of(service, access);
        loop {
            let done = watch(access, batch, &submission, changes).await?;
            let details = details(access, &done).await?;
            if others.may_exit(&mut []).await? {
                return Ok((done, details));
            }
            tokio::time::sleep(run::LOOK).await;
        }
    };
    owner::join_or_own(data_dir, limits.limits(), work).await
}

async fn watch(
    access: &Client,
    batch: &BatchRequest,
    submission: &str,
    changes: &mut Changes,
) -> Result<SettledBatch> {
    let mut watch = access.watch(BatchStatus { batch: batch.id.clone(), all: false }).await?;
    while let Some(standing) = next(&mut watch, access, changes).await? {
        for entry in &standing.view.plan.projects {
            let document = standing.projects.get(&entry.name);
            changes.project(entry.name.as_str(), standing.state(&entry.name))?;
            if let Some(document) = document {
                changes.features(entry.name.as_str(), document)?;
            }
        }
        if !standing.is_open {
            let is_held = *standing.view.submitted < *submission;
            if is_held {
                term::say(format!(
                    "batch {} takes nothing in: it is paused, or cannot go on",
                    batch.id
                ));
            }
            changes.finish();
            return Ok(SettledBatch { standing, is_held });
        }
    }
    anyhow::bail!("no process runs the batch {}", batch.id)
}

/// The next status; the live display is drawn meanwhile.
async fn next(
    watch: &mut Watch<BatchStatus>,
    access: &Client,
    changes: &mut Changes,
) -> Result<Option<BatchStanding>> {
    let mut next = std::pin::pin!(watch.next());
    loop {
        changes.tick(access).await;
        if let Ok(standing) = tokio::time::timeout(run::LOOK, &mut next).await {
            return Ok(standing?);
        }
    }
}

/// The current states of all projects of a batch.
pub(super) async fn now(access: &Client, batch: &str) -> Result<SettledBatch> {
    let standing = call(access, BatchStatus { batch: batch.to_owned(), all: true }).await?;
    Ok(SettledBatch { standing, is_held: false })
}
