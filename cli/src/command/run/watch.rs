//! Having projects run, and watching them until nothing more happens without a person.

use std::time::Duration;

use anyhow::Result;
use longhaul_engine::RunId;

use super::{Progress, differs};
use crate::command::call;
use crate::place::Project;
use longhaul_server::settled::{Watched, is_settled};
use longhaul_server::status::StatusDocument;
use longhaul_server::{Begin, Client, Error, ProjectStatus, RequestError, Service};

/// How often a project is looked at.
const LOOK: Duration = Duration::from_millis(200);

/// Has the projects run.
pub(super) async fn begin(access: &Client, projects: &[Project], take_over: bool) -> Result<Vec<Watched>> {
    let mut watched = Vec::new();
    for project in projects {
        differs::say(access, project).await;
        call(access, Begin { project: project.reference(), take_over }).await?;
        watched.push(Watched::new(project.id.clone()));
    }
    Ok(watched)
}

/// Watches projects until all have settled; as the owner, those of others who joined us as well.
pub(super) async fn watch(
    access: &Client,
    mut ours: Vec<Watched>,
    service: Option<&Service>,
) -> Result<Vec<StatusDocument>> {
    let mut progress = Progress::new();
    let mut others = service.map(|service| Others::of(service, access));
    loop {
        let mut documents = Vec::new();
        let mut all_settled = true;
        for project in &mut ours {
            let document = status(access, &project.id).await?;
            progress.show(&document);
            all_settled &= is_settled(project, &document);
            documents.push(document);
        }
        let is_over = match &mut others {
            Some(others) => {
                all_settled &= others.are_settled(&ours).await?;
                others.may_go(all_settled).await
            }
            None => all_settled,
        };
        if is_over {
            progress.finish();
            return Ok(for_people(access, documents).await);
        }
        if !all_settled {
            tokio::time::sleep(LOOK).await;
        }
    }
}

async fn status(access: &Client, project: &RunId) -> Result<StatusDocument> {
    status_for(access, project, false).await
}

/// The same documents with what is for people; as they are, if nobody is there any more to ask for that.
async fn for_people(access: &Client, mut documents: Vec<StatusDocument>) -> Vec<StatusDocument> {
    for document in &mut documents {
        if let Ok(project) = RunId::new(document.project.clone())
            && let Ok(told) = status_for(access, &project, true).await
        {
            document.features = told.features;
        }
    }
    documents
}

async fn status_for(access: &Client, project: &RunId, for_people: bool) -> Result<StatusDocument> {
    let status = call(access, ProjectStatus { project: project.clone(), for_people }).await?;
    Ok(status.ok_or(RequestError::UnknownRun { run: project.clone() }).map_err(Error::from)?)
}

/// The projects of others who joined the owner of a log: they settle before it goes.
pub(in crate::command) struct Others<'a> {
    service: &'a Service,
    access: &'a Client,
    watched: Vec<Watched>,
    is_closed: bool,
}

impl<'a> Others<'a> {
    pub(in crate::command) fn of(service: &'a Service, access: &'a Client) -> Self {
        Self { service, access, watched: Vec::new(), is_closed: false }
    }

    /// Whether all that is run besides ours has settled, batches too.
    pub(in crate::command) async fn are_settled(&mut self, ours: &[Watched]) -> Result<bool> {
        for run in self.service.engaged() {
            if ours.iter().chain(&self.watched).all(|known| known.id != run) {
                self.watched.push(Watched::new(run));
            }
        }
        let mut all_settled = !self.service.has_open_batch();
        for project in &mut self.watched {
            all_settled &= is_settled(project, &status(self.access, &project.id).await?);
        }
        Ok(all_settled)
    }

    /// What comes after a look at everything: the service is closed when all has settled, and when all has settled still, by what
    /// somebody was answered meanwhile, the owner may go.
    pub(in crate::command) async fn may_go(&mut self, all_settled: bool) -> bool {
        let was_closed = std::mem::replace(&mut self.is_closed, all_settled);
        match (all_settled, was_closed) {
            (true, false) => self.service.close().await,
            (false, true) => self.service.reopen(),
            _ => {}
        }
        all_settled && was_closed
    }
}
