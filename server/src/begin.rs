//! Starting a project in the process that owns the log, and its status.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use longhaul_activities::git;
use longhaul_engine::{NewRun, Payload, RunId, Started, StoreError};
use longhaul_workflows::backlog::FeatureId;
use longhaul_workflows::batch::Overrides;
use longhaul_workflows::contracts::{LoadedBacklog, ProjectRef};
use longhaul_workflows::project::{ProjectInput, ProjectWorkflow, SyncRequest, signal};
use serde::{Deserialize, Serialize};

use crate::head::known_root;
use crate::perform::request;
use crate::request::RequestError;
use crate::service::Service;
use crate::status::{self, StatusDocument};
use crate::{project, served};

/// The status of a project; `None` if the log does not know it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ProjectStatus {
    /// The run of the project.
    pub project: RunId,
    /// The current list, used if no process runs the project. Absent: the list that the project
    /// read last.
    #[serde(skip)]
    pub list: Option<LoadedBacklog>,
}

/// Starts a project, or makes its run read its list again.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Begin {
    /// The project: its id, and the top of its checkout.
    pub project: ProjectRef,
    /// Whether to claim the repository from another data directory.
    pub take_over: bool,
    /// The only features to start, with those that they depend on; empty: all.
    #[serde(default)]
    pub only: BTreeSet<FeatureId>,
}

request!(ProjectStatus, "status" -> Option<StatusDocument>,
    |self, service| self.run(&service).await);

impl ProjectStatus {
    async fn run(self, service: &Service) -> Result<Option<StatusDocument>, RequestError> {
        let list = self.list.filter(|_| service.engine.is_none());
        match status::of_project(&*service.store, &self.project, &service.owner(), list).await {
            Err(StoreError::UnknownRun(_)) => Ok(None),
            known => {
                let mut document = known?;
                document.read_landing().await;
                Ok(Some(document))
            }
        }
    }
}

request!(Begin, "begin" -> (), command: Some("run"), |self, service| {
    project::check(Path::new(&self.project.root)).await?;
    service.own(&self.project, self.take_over).await?;
    let settings = StartSettings { only: self.only, ..StartSettings::default() };
    service.begin(self.project, &settings).await
});

impl Service {
    pub(crate) async fn begin(
        self: &Arc<Self>,
        project: ProjectRef,
        terms: &StartSettings,
    ) -> Result<(), RequestError> {
        let engine = self.running()?;
        let run = RunId::new(project.id.clone()).map_err(RequestError::refused)?;
        let known = known_root(&*self.store, &run).await?;
        let moved_from = known.filter(|root| *root != project.root);
        if let Some(root) = &moved_from
            && git::carries_id(Path::new(root), run.as_str()).await
        {
            return Err(RequestError::refused(is_copy(&project, root).await));
        }
        self.git.is_at(&project);
        if let Some(root) = &moved_from {
            let to = &project.root;
            tracing::info!(project = %run, from = %root, %to, "the project was moved");
            if let Err(failure) = self.git.follow_move(&project).await {
                return Err(RequestError::Failed { reason: failure.message });
            }
        }
        self.settle_forks(&project).await?;
        engine.adopt(run.as_str()).await?;
        let input = Payload::of(&ProjectInput { project: project.clone(), memory: None });
        let workflow = ProjectWorkflow::NAME.into();
        let new = NewRun { run: run.clone(), workflow, input, labels: terms.labels.clone() };
        let started = engine.start(new.clone()).await?;
        if started == Started::Over || (started == Started::Joined && self.is_ending(&run).await?) {
            self.begin_again(engine, &project, new).await?;
        } else if started == Started::Joined {
            self.report_finished_work(engine, &run).await?;
        }
        if started != Started::New && !terms.labels.is_empty() {
            engine.signal(&run, signal::LABEL, Payload::of(&terms.labels)).await?;
        }
        if !terms.overrides.is_empty() {
            engine.signal(&run, signal::OVERRIDE, Payload::of(&terms.overrides)).await?;
        }
        if moved_from.is_some() {
            engine.signal(&run, signal::MOVED, Payload::of(&project.root)).await?;
        }
        let id = uuid::Uuid::now_v7().to_string();
        let sync = SyncRequest { id, only: terms.only.clone() };
        engine.signal(&run, signal::SYNC, Payload::of(&sync)).await?;
        served::serve(self, run, PathBuf::from(project.root)).await;
        Ok(())
    }
}

/// Refuses an id that belongs to another existing directory.
pub async fn is_copy(project: &ProjectRef, root: &str) -> String {
    if git::share_repository(Path::new(&project.root), Path::new(root)).await {
        return format!(
            "{} and {root} are work trees of one repository, which is one project: run it in \
             {root}, or make a clone",
            project.root
        );
    }
    format!(
        "{} carries the project id `{}`, which belongs to {root}: it seems to be a copy; give it \
         an id of its own with `git -C {} config --unset longhaul.id`",
        project.root, project.id, project.root
    )
}

/// The settings under which the projects of a batch start.
#[derive(Debug, Default)]
pub(crate) struct StartSettings {
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) overrides: Overrides,
    /// The only features to start; empty: all.
    pub(crate) only: BTreeSet<FeatureId>,
}
