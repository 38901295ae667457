//! Staying with a batch until nothing more happens without a person: as the owner of the log, or as a guest.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use longhaul_engine::RunId;
use longhaul_workflows::batch::{Entry, ProjectState};
use longhaul_workflows::contracts::LoadedBacklog;
use longhaul_workflows::settings::Settings;

use crate::command::{call, owner, run};
use crate::term;
use longhaul_server::status::{self, StatusDocument};
use longhaul_server::{BatchStanding, BatchStatus, Client, Limits, ProjectStatus, Service};

use super::{Asked, Changes, submit};

/// How often a batch is looked at.
const LOOK: Duration = Duration::from_millis(200);

/// A batch that has come to rest, and where its projects stand, in the order of the file.
pub(super) struct Done {
    pub(super) standing: BatchStanding,
    pub(super) documents: Vec<StatusDocument>,
    /// Whether it did not even look at what was submitted.
    pub(super) is_held: bool,
}

/// Submits a batch and stays until it is done; `None` if it was interrupted.
pub(super) async fn until_done(
    data_dir: &Path,
    limits: Limits,
    asked: &Asked,
    changes: &mut Changes,
) -> Result<Option<Done>> {
    let work = async |access: &Client, service: Option<&Service>| {
        let submission = submit(access, asked).await?;
        let Some(service) = service else {
            term::say("another Longhaul runs this log: it carries the batch on");
            return watch(access, asked, &submission, changes).await;
        };
        let mut others = run::Others::of(service, access);
        loop {
            let done = watch(access, asked, &submission, changes).await?;
            let all_settled = others.are_settled(&[]).await?;
            if others.may_go(all_settled).await {
                return Ok(done);
            }
            if !all_settled {
                tokio::time::sleep(LOOK).await;
            }
        }
    };
    owner::join_or_own(data_dir, limits, work).await
}

async fn watch(access: &Client, asked: &Asked, submission: &str, changes: &mut Changes) -> Result<Done> {
    loop {
        let standing = standing(access, &asked.id).await?;
        for entry in &standing.view.plan.projects {
            let state = standing.states.get(&entry.name).unwrap_or(&ProjectState::Waiting);
            changes.project(entry.name.as_str(), state.as_str())?;
            if *state == ProjectState::Working {
                changes.features(entry.name.as_str(), &document(access, entry).await?)?;
            }
        }
        if !standing.is_open {
            let is_held = *standing.view.submitted < *submission;
            if is_held {
                term::say(format!("batch {} takes nothing in: it is paused, or cannot go on", asked.id));
            }
            let mut documents = Vec::new();
            for entry in &standing.view.plan.projects {
                let document = document(access, entry).await?;
                changes.features(entry.name.as_str(), &document)?;
                documents.push(document);
            }
            changes.finish();
            return Ok(Done { standing, documents, is_held });
        }
        tokio::time::sleep(LOOK).await;
    }
}

pub(super) async fn standing(access: &Client, batch: &str) -> Result<BatchStanding> {
    call(access, BatchStatus { batch: batch.to_owned() }).await
}

/// Where a project stands: by the log, or, if it has not begun, by its files.
async fn document(access: &Client, entry: &Entry) -> Result<StatusDocument> {
    let project = RunId::new(entry.project.id.clone())?;
    let status = call(access, ProjectStatus { project: project.clone(), for_people: false }).await?;
    if let Some(status) = status.filter(|status| !status.root.is_empty()) {
        return Ok(status);
    }
    let root = Path::new(&entry.project.root);
    let nothing = LoadedBacklog {
        features: Vec::new(),
        settings: Settings::default(),
        target: String::new(),
        list_file: String::new(),
        notes: Vec::new(),
        lost: Vec::new(),
        tip: None,
    };
    let loaded = longhaul_activities::project::load(root).await.unwrap_or(nothing);
    Ok(status::of_files(&project, &entry.project.root, &loaded))
}
