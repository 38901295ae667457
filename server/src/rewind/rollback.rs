//! Rolls a project back: halts it, and waits until its run has moved the target and reset the
//! features that landed since.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use longhaul_activities::files::Projector;
use longhaul_activities::git::RollbackCheck;
use longhaul_engine::{Change, Engine, MessageBody, NewRun, Payload, RunId, Status, Summary};
use longhaul_workflows::backlog::FeatureId;
use longhaul_workflows::contracts::ProjectRef;
use longhaul_workflows::project::{FeatureView, ProjectSummary, Rollback, RollbackView};

use longhaul_workflows::projection::{ProjectState, ProjectView};
use tokio::sync::broadcast::{self, error::RecvError};

use super::{RollBack, RolledBack};
use crate::advice;
use crate::order::Order;
use crate::request::RequestError;
use crate::run_kind::RunKind;
use crate::service::Service;
use crate::settled::{Watched, is_settled};
use crate::status;
use crate::steering::Steer;

/// How long a project without a result must make no step before its state is checked.
const QUIET: Duration = Duration::from_secs(1);

impl Service {
    pub(crate) async fn rollback(&self, request: RollBack) -> Result<RolledBack, RequestError> {
        let RollBack { project, to, request, dry_run } = request;
        let summary = self.existing(&project).await?;
        let published = self.store.published(&project).await?;
        let view =
            published.get(ProjectSummary::KEY).and_then(|view| view.read::<ProjectSummary>().ok());
        let Some(view) = view.filter(|_| RunKind::of(&summary) == RunKind::Project) else {
            return Err(RequestError::refused(format!("{project} is no project that has run")));
        };
        if matches!(summary.status, Status::Paused(_)) || self.is_to_pause(&project).await? {
            let reason =
                format!("project {project} is paused: {} first", advice::on("resume", &project));
            return Err(RequestError::Held { reason });
        }
        let landed =
            FeatureId::new(to.clone()).ok().and_then(|id| published.get(&FeatureView::key(&id)));
        let landed =
            landed.and_then(|view| view.read::<FeatureView>().ok()).and_then(|view| view.commit);
        let place = ProjectRef { id: project.to_string(), root: view.root.clone() };
        let name = landed.unwrap_or(to);
        let commit =
            match self.git.check_rollback(&place, &view.target, &name, &view.list_file).await? {
                RollbackCheck::Free(commit) => commit,
                RollbackCheck::Blocked(reason) => return Err(RequestError::Held { reason }),
            };
        if dry_run {
            let features = ProjectView::of(&published);
            let landed = features.backlog.iter().filter_map(|feature| {
                Some((&feature.id, features.feature(&feature.id)?.commit.as_deref()?))
            });
            let commits = self.git.undone_by(&place, &view.target, &commit).await?;
            let undone = landed.filter(|(_, landed)| commits.contains(*landed));
            let undone = undone.map(|(id, _)| id.to_string()).collect();
            return Ok(RolledBack { to: commit, kept: String::new(), undone });
        }
        let engine = self.running()?;
        self.begin_if_over(engine, &place, &summary).await?;
        // Subscribed before the request, so that its result is not missed.
        let mut changes = engine.changes();
        let rollback =
            Rollback { id: uuid::Uuid::now_v7().to_string(), to: commit, request: request.clone() };
        let payload = Payload::of(&rollback);
        let body = MessageBody::signal(Rollback::SIGNAL, payload);
        // Sent first, because it also halts the project, and a halted project without work settles.
        // Sent before the project is served, so that a project at rest does nothing before it reads
        // it.
        self.deliver(&project, body).await?;
        let steer =
            Steer { target: project.clone(), order: Order::Cancel, request, dry_run: false };
        // The project may be idle.
        match self.steer(&steer).await {
            Ok(_) | Err(RequestError::Refused { .. }) => {}
            Err(error) => return Err(error),
        }
        engine.adopt(project.as_str()).await?;
        let rolled_back = self.rollback_result(engine, &mut changes, &project, &rollback).await;
        let refreshed = Projector::new(Arc::clone(&self.store), project, PathBuf::from(view.root))
            .refresh()
            .await;
        if let Err(error) = refreshed {
            tracing::warn!("{error}");
        }
        rolled_back
    }

    /// Starts a new run of a project whose run is over or ends: it would not take the request. The
    /// new run stays halted.
    async fn begin_if_over(
        &self,
        engine: &Engine,
        place: &ProjectRef,
        summary: &Summary,
    ) -> Result<(), RequestError> {
        let project = RunId::new(place.id.clone()).map_err(RequestError::refused)?;
        if !self.is_ending(&project).await? {
            return Ok(());
        }
        engine.adopt(project.as_str()).await?;
        let Summary { workflow, labels, .. } = summary.clone();
        let new = NewRun { run: project, workflow, input: Payload::null(), labels };
        Ok(self.begin_again(engine, place, new).await?)
    }

    /// Waits for the result; an error if a person has to act before the project is rolled back.
    async fn rollback_result(
        &self,
        engine: &Engine,
        changes: &mut broadcast::Receiver<Arc<Change>>,
        project: &RunId,
        rollback: &Rollback,
    ) -> Result<RolledBack, RequestError> {
        let mut watched = Watched::new(project.clone());
        loop {
            let published = self.store.published(project).await?;
            let view =
                published.get(RollbackView::KEY).and_then(|view| view.read::<RollbackView>().ok());
            if let Some(view) = view.filter(|view| view.rollback.id == rollback.id) {
                let went = view
                    .done
                    .ok_or(RequestError::Held { reason: view.problem.unwrap_or_default() })?;
                let undone = went.undone.iter().map(ToString::to_string).collect();
                return Ok(RolledBack { to: rollback.to.clone(), kept: went.kept, undone });
            }
            if let Some(stop) = engine.stuck().remove(project) {
                return Err(RequestError::Failed {
                    reason: format!("run {project} cannot go on: {stop}"),
                });
            }
            match tokio::time::timeout(QUIET, next_change(changes, project)).await {
                Ok(true) => {}
                Ok(false) => {
                    return Err(RequestError::Failed { reason: "the log is closed".into() });
                }
                // The owner of the log exits only after its last response, so this one must not
                // wait for a person.
                Err(_) => self.is_on_its_way(&mut watched).await?,
            }
        }
    }

    /// An error if the project does nothing more before a person acts.
    async fn is_on_its_way(&self, watched: &mut Watched) -> Result<(), RequestError> {
        let project = watched.id.clone();
        let mut owner = self.owner();
        // Not served by a process that only rolls back.
        owner.served.push(project.clone());
        let document = status::brief(&*self.store, &project, &owner).await?;
        if !is_settled(watched, &document) {
            return Ok(());
        }
        if document.is_over {
            return Err(RequestError::held(format!(
                "project {project} ended before it was rolled back: repeat the command"
            )));
        }
        if document.status == ProjectState::Paused {
            return Err(RequestError::held(format!(
                "project {project} is paused: {} rolls it back and continues it",
                advice::on("resume", &project)
            )));
        }
        let held = document.features.iter().find(|line| line.is_held());
        let held = held.map(|line| {
            format!("{}: {}", line.id, line.reason.as_deref().unwrap_or("it needs a person"))
        });
        let reason = held.or(document.reason).unwrap_or_default();
        Err(RequestError::held(format!(
            "project {project} is halted, and is rolled back when its features have ended: {reason}"
        )))
    }
}

/// Waits for a change of a project or its runs; `false` if there will be none.
async fn next_change(changes: &mut broadcast::Receiver<Arc<Change>>, project: &RunId) -> bool {
    loop {
        match changes.recv().await {
            Ok(change) if !change.run.is_within(project.as_str()) => {}
            Ok(_) | Err(RecvError::Lagged(_)) => return true,
            Err(RecvError::Closed) => return false,
        }
    }
}
