//! Starts projects and watches them until there is no more progress without a person.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use longhaul_engine::RunId;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::{Progress, drift};
use crate::command::call;
use crate::exit::usage;
use crate::place::Project;
use longhaul_server::settled::{Watched, is_settled, verdict_of};
use longhaul_server::status::StatusDocument;
use longhaul_server::{
    Begin, Client, Due, Error, ProjectStatus, RequestError, Service, ShowDue, TakeUpEdits,
};
use longhaul_workflows::backlog::FeatureId;

/// Time alone settles some projects, so re-evaluate the last status after this time without news.
pub(in crate::command) const LOOK: Duration = Duration::from_millis(200);

/// Starts the projects.
pub(super) async fn begin(
    access: &Client,
    projects: &[Project],
    take_over: bool,
    only: Option<&FeatureId>,
) -> Result<Vec<Watched>> {
    let mut watched = Vec::new();
    for project in projects {
        drift::say(access, project).await;
        let only = only.into_iter().cloned().collect();
        call(access, Begin { project: project.reference(), take_over, only }).await?;
        watched.push(Watched::new(project.id.clone()));
    }
    Ok(watched)
}

/// When to stop watching projects that have not settled.
#[derive(Debug, Clone, Copy)]
pub(super) struct StopCondition<'a> {
    /// Whether nothing more can be done now.
    pub(super) once: bool,
    /// At a time.
    pub(super) deadline: Option<Instant>,
    /// When this feature has settled.
    pub(super) feature: Option<&'a FeatureId>,
}

impl StopCondition<'_> {
    /// Whether the feature has settled; an error if the list does not have it.
    fn is_reached(&self, documents: &[Option<StatusDocument>]) -> Result<bool> {
        let Some(feature) = self.feature else { return Ok(false) };
        let Some(document) = documents.iter().flatten().next() else { return Ok(false) };
        let is_listed = document.features.iter().any(|line| line.id == feature.as_str());
        if !is_listed && document.active_runs == 0 && document.problem.is_none() {
            let root = &document.root;
            return Err(usage(format!("the feature {feature} is not in the list of {root}")));
        }
        Ok(verdict_of(document, feature.as_str()).is_some())
    }
}

/// The end of a watch.
pub(super) struct WatchEnd {
    pub(super) documents: Vec<StatusDocument>,
    /// When the projects continue by themselves, if they have not settled.
    pub(super) due: Option<Due>,
}

/// Watches projects until all have settled, or until then; as the owner, also those of connected
/// clients.
pub(super) async fn watch(
    access: &Client,
    mut ours: Vec<Watched>,
    service: Option<&Service>,
    until: StopCondition<'_>,
) -> Result<WatchEnd> {
    let mut progress = Progress::new(ours.len());
    let mut others = service.map(|service| OwnerWork::of(service, access));
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
        let is_reached = until.is_reached(&documents)?;
        if settled.contains(&false) {
            if is_reached {
                progress.finish();
                return Ok(WatchEnd {
                    documents: documents.into_iter().flatten().collect(),
                    due: None,
                });
            }
            if let Some(due) = over(access, &ours, service, until).await? {
                // The last update may be older: all may have settled since.
                let mut all_settled = true;
                for (project, document) in ours.iter_mut().zip(&mut documents) {
                    let status = ProjectStatus { project: project.id.clone(), list: None };
                    *document = call(access, status).await?;
                    all_settled &=
                        document.as_ref().is_some_and(|document| is_settled(project, document));
                }
                if !all_settled {
                    progress.finish();
                    let documents = documents.into_iter().flatten().collect();
                    return Ok(WatchEnd { documents, due: Some(due) });
                }
            }
            continue;
        }
        let may_exit = match &mut others {
            Some(others) => others.may_exit(&mut ours).await?,
            None => true,
        };
        if may_exit && takes_up_edits(access, &mut ours).await? {
            continue;
        }
        if may_exit {
            progress.finish();
            return Ok(WatchEnd {
                documents: documents.into_iter().flatten().collect(),
                due: None,
            });
        }
    }
}

/// Whether a list or settings were edited in the last moment: then the projects have not settled.
async fn takes_up_edits(access: &Client, ours: &mut [Watched]) -> Result<bool> {
    let projects: Vec<RunId> = ours.iter().map(|project| project.id.clone()).collect();
    let is_edited = call(access, TakeUpEdits { projects }).await?;
    if is_edited {
        for project in ours {
            *project = Watched::new(project.id.clone());
        }
    }
    Ok(is_edited)
}

/// Whether to stop before all have settled. Projects of clients count for the owner.
async fn over(
    access: &Client,
    ours: &[Watched],
    service: Option<&Service>,
    until: StopCondition<'_>,
) -> Result<Option<Due>> {
    let is_late = until.deadline.is_some_and(|deadline| Instant::now() >= deadline);
    if !until.once && !is_late {
        return Ok(None);
    }
    let mut runs: Vec<RunId> = ours.iter().map(|project| project.id.clone()).collect();
    for run in service.map(Service::served).unwrap_or_default() {
        if !runs.contains(&run) {
            runs.push(run);
        }
    }
    let due = call(access, ShowDue { runs }).await?;
    Ok(Some(due).filter(|due| is_late || !due.is_now))
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
pub(in crate::command) struct OwnerWork<'a> {
    service: &'a Service,
    access: &'a Client,
    watched: Vec<Watched>,
}

impl<'a> OwnerWork<'a> {
    pub(in crate::command) fn of(service: &'a Service, access: &'a Client) -> Self {
        Self { service, access, watched: Vec::new() }
    }

    /// Whether the owner may exit: all work has settled, and still so after the last request.
    pub(in crate::command) async fn may_exit(&mut self, ours: &mut [Watched]) -> Result<bool> {
        if !self.are_settled(ours).await? {
            return Ok(false);
        }
        self.service.close().await;
        let may_exit = self.are_settled(ours).await?;
        if !may_exit {
            self.service.reopen();
        }
        Ok(may_exit)
    }

    /// Whether all running work has settled, including batches.
    async fn are_settled(&mut self, ours: &mut [Watched]) -> Result<bool> {
        for run in self.service.served() {
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
