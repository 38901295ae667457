//! Staying with a batch until nothing more happens without a person: as the owner of the log, or as a guest.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use longhaul_workflows::batch::ProjectState;

use crate::command::{call, run};
use crate::exit;
use crate::term;
use longhaul_server::status::StatusDocument;
use longhaul_server::{BatchStanding, BatchStatus, Client, Limits, Listener, Service};

use super::{Asked, Changes, submit};

/// How long to wait for an owner that ends, and for projects of others.
const LOOK: Duration = Duration::from_millis(200);

/// A batch that has come to rest, and where its projects stand, in the order of the file.
pub(super) struct Done {
    pub(super) standing: BatchStanding,
    pub(super) documents: Vec<StatusDocument>,
    /// Whether it did not even look at what was submitted.
    pub(super) is_held: bool,
}

/// Submits a batch and stays until it is done; `None` if somebody interrupted it.
pub(super) async fn until_done(
    data_dir: &Path,
    limits: Limits,
    asked: &Asked,
    changes: &mut Changes,
) -> Result<Option<Done>> {
    loop {
        if let Some(service) = run::become_owner(data_dir, limits).await? {
            return as_owner(data_dir, service, asked, changes).await;
        }
        let Some(access) = Client::reach_owner(data_dir, term::notice).await? else { continue };
        let work = async {
            let submission = submit(&access, asked).await?;
            term::say("another Longhaul runs this log: it carries the batch on");
            watch(&access, asked, &submission, changes).await
        };
        tokio::select! {
            done = work => match done {
                Ok(done) => return Ok(Some(done)),
                Err(error) if exit::is_complaint(&error) => return Err(error),
                // The owner goes away: the work is for us then.
                Err(_) => tokio::time::sleep(LOOK).await,
            },
            () = run::interrupted() => {
                term::say("the other Longhaul goes on with it");
                return Ok(None);
            }
        }
    }
}

async fn as_owner(
    data_dir: &Path,
    service: Arc<Service>,
    asked: &Asked,
    changes: &mut Changes,
) -> Result<Option<Done>> {
    let server = Listener::start(data_dir, Arc::clone(&service))?;
    let access = Client::Local(Arc::clone(&service));
    let work = async {
        let submission = submit(&access, asked).await?;
        let mut others = run::Others::of(&service, &access);
        loop {
            let done = watch(&access, asked, &submission, changes).await?;
            if others.may_go(&mut []).await? {
                return anyhow::Ok(done);
            }
            tokio::time::sleep(LOOK).await;
        }
    };
    let done = tokio::select! {
        done = work => done.map(Some),
        () = run::interrupted() => {
            run::stop_on_request(data_dir, &service).await;
            Ok(None)
        }
    };
    service.stop().await;
    drop(server);
    done
}

async fn watch(access: &Client, asked: &Asked, submission: &str, changes: &mut Changes) -> Result<Done> {
    let mut watch = access.watch(BatchStatus { batch: asked.id.clone() }).await?;
    while let Some(mut standing) = watch.next().await? {
        for entry in &standing.view.plan.projects {
            let state = standing.states.get(&entry.name).unwrap_or(&ProjectState::Waiting);
            changes.project(entry.name.as_str(), state.as_str())?;
            if let Some(document) = standing.projects.get(&entry.name) {
                changes.features(entry.name.as_str(), document)?;
            }
        }
        if !standing.is_open {
            let is_held = *standing.view.submitted < *submission;
            if is_held {
                term::say(format!("batch {} takes nothing in: it is paused, or cannot go on", asked.id));
            }
            changes.finish();
            let names = standing.view.plan.projects.iter().map(|entry| &entry.name);
            let documents = names.filter_map(|name| standing.projects.remove(name)).collect();
            return Ok(Done { standing, documents, is_held });
        }
    }
    anyhow::bail!("no process carries the batch {} on", asked.id)
}

pub(super) async fn standing(access: &Client, batch: &str) -> Result<BatchStanding> {
    call(access, BatchStatus { batch: batch.to_owned() }).await
}
