//! Starts projects and watches them until there is no more progress without a person.

use std::time::Duration;

use anyhow::{Context, Result};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::{Progress, drift};
use crate::command::call;
use crate::place::Project;
use longhaul_server::settled::{Watched, is_settled};
use longhaul_server::status::StatusDocument;
use longhaul_server::{Begin, Client, Error, ProjectStatus, RequestError, Service};

/// Time alone settles some projects, so re-evaluate the last status after this time without news.
pub(in crate::command) const LOOK: Duration = Duration::from_millis(200);

/// Starts the projects.
pub(super) async fn begin(
    access: &Client,
    projects: &[Project],
    take_over: bool,
) -> Result<Vec<Watched>> {
    let mut watched = Vec::new();
    for project in projects {
        drift::say(access, project).await;
        call(access, Begin { project: project.reference(), take_over }).await?;
        watched.push(Watched::new(project.id.clone()));
    }
    Ok(watched)
}

/// Watches projects until all have settled; as the owner, also those of connected clients.
pub(super) async fn watch(
    access: &Client,
    mut ours: Vec<Watched>,
    service: Option<&Service>,
) -> Result<Vec<StatusDocument>> {
    let mut progress = Progress::new(ours.len());
    let mut others = service.map(|service| Others::of(service, access));
    let (mut updates, _tasks) = follow(access, &ours).await?;
    let mut documents: Vec<Option<StatusDocument>> = ours.iter().map(|_| None).collect();
    loop {
        if let Ok(update) = tokio::time::timeout(LOOK, updates.recv()).await {
            let Update { index, document } =
                update.context("no process tells where the projects stand")?;
            let document = document?;
            progress.show(&document);
            documents[index] = Some(document);
        }
        progress.tick(access).await;
        let known = ours.iter_mut().zip(&documents);
        let settled: Vec<bool> = known
            .map(|(project, document)| {
                document.as_ref().is_some_and(|document| is_settled(project, document))
            })
            .collect();
        if settled.contains(&false) {
            continue;
        }
        let may_go = match &mut others {
            Some(others) => others.may_go(&mut ours).await?,
            None => true,
        };
        if may_go {
            progress.finish();
            return Ok(documents.into_iter().flatten().collect());
        }
    }
}

/// A new status of the project at an index.
struct Update {
    index: usize,
    document: Result<StatusDocument>,
}

/// Subscribes to the status of projects, until the tasks are dropped.
async fn follow(
    access: &Client,
    projects: &[Watched],
) -> Result<(mpsc::Receiver<Update>, JoinSet<()>)> {
    let (sender, updates) = mpsc::channel(projects.len().max(1));
    let mut tasks = JoinSet::new();
    for (index, project) in projects.iter().enumerate() {
        let id = project.id.clone();
        let mut watch = access.watch(ProjectStatus { project: id.clone(), list: None }).await?;
        let sender = sender.clone();
        tasks.spawn(async move {
            loop {
                let document = match watch.next().await {
                    Ok(Some(Some(document))) => Ok(document),
                    Ok(Some(None)) => {
                        Err(Error::from(RequestError::UnknownRun { run: id.clone() }).into())
                    }
                    Ok(None) => return,
                    Err(error) => Err(error.into()),
                };
                let is_last = document.is_err();
                if sender.send(Update { index, document }).await.is_err() || is_last {
                    return;
                }
            }
        });
    }
    Ok((updates, tasks))
}

/// Waits for all work of the owner, including that of clients, before the owner exits.
pub(in crate::command) struct Others<'a> {
    service: &'a Service,
    access: &'a Client,
    watched: Vec<Watched>,
}

impl<'a> Others<'a> {
    pub(in crate::command) fn of(service: &'a Service, access: &'a Client) -> Self {
        Self { service, access, watched: Vec::new() }
    }

    /// Whether the owner may exit: all work has settled, and still so after the last request.
    pub(in crate::command) async fn may_go(&mut self, ours: &mut [Watched]) -> Result<bool> {
        if !self.are_settled(ours).await? {
            return Ok(false);
        }
        self.service.close().await;
        let may_go = self.are_settled(ours).await?;
        if !may_go {
            self.service.reopen();
        }
        Ok(may_go)
    }

    /// Whether all running work has settled, including batches.
    async fn are_settled(&mut self, ours: &mut [Watched]) -> Result<bool> {
        for run in self.service.engaged() {
            if ours.iter().chain(&self.watched).all(|known| known.id != run) {
                self.watched.push(Watched::new(run));
            }
        }
        let mut all_settled = !self.service.has_open_batch();
        for project in ours.iter_mut().chain(&mut self.watched) {
            let status = ProjectStatus { project: project.id.clone(), list: None };
            let status = call(self.access, status).await?;
            all_settled &= status.is_none_or(|status| is_settled(project, &status));
        }
        Ok(all_settled)
    }
}
