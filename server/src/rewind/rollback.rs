//! Rolling a project back: it is halted, its run moves the target and takes back what landed since, and all wait for that.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use longhaul_activities::files::Projector;
use longhaul_activities::git::WayBack;
use longhaul_engine::{FailureKind, MessageBody, Payload, Request, RunId, Status, StoreError};
use longhaul_workflows::backlog::FeatureId;
use longhaul_workflows::contracts::ProjectRef;
use longhaul_workflows::project::{FeatureView, ProjectView, ProjectWorkflow, Rollback, RollbackView};

use super::{Report, refused, report};
use crate::order::Order;
use crate::service::{Answer, Service};

/// How often the result is looked for.
const LOOK: Duration = Duration::from_millis(50);

impl Service {
    pub(crate) async fn rollback(&self, project: RunId, to: String, request: Request) -> Result<Answer, StoreError> {
        let Some(engine) = &self.engine else {
            return Ok(refused("this log is not being run"));
        };
        let summary = self.store.summary(&project).await?.ok_or_else(|| StoreError::UnknownRun(project.clone()))?;
        let published = self.store.published(&project).await?;
        let view = published.get(ProjectView::KEY).and_then(|view| view.read::<ProjectView>().ok());
        let Some(view) = view.filter(|_| summary.workflow == ProjectWorkflow::NAME) else {
            return Ok(refused(format!("{project} is no project that has run")));
        };
        if matches!(summary.status, Status::Paused(_)) || self.is_to_pause(&project).await? {
            let reason = format!("project {project} is paused: `longhaul resume {}` first", view.root);
            return Ok(report(Report::Held { reason }));
        }
        let landed = FeatureId::new(to.clone()).ok().and_then(|id| published.get(&FeatureView::key(&id)));
        let landed = landed.and_then(|view| view.read::<FeatureView>().ok()).and_then(|view| view.commit);
        let place = ProjectRef { id: project.to_string(), root: view.root.clone() };
        let name = landed.unwrap_or(to);
        let commit = match self.git.way_back(&place, &view.target, &name, &view.list_file).await {
            Ok(WayBack::Free(commit)) => commit,
            Ok(WayBack::Blocked(reason)) => return Ok(report(Report::Held { reason })),
            Err(failure) if failure.kind == FailureKind::Terminal => return Ok(refused(failure.message)),
            Err(failure) => return Ok(Answer::Failed { reason: failure.message }),
        };
        let asked = Rollback { id: uuid::Uuid::now_v7().to_string(), to: commit, request: request.clone() };
        let payload = Payload::of(&asked);
        let body = MessageBody::signal(Rollback::SIGNAL, payload);
        // First, for it halts the project, too, and one that is halted and has nothing to do comes to rest. And before the
        // project is taken up: at rest, nothing may go on that has not heard of it.
        self.deliver(&project, body).await?;
        self.steer(&project, &Order::Cancel, &request, false).await?;
        engine.adopt(project.as_str()).await?;
        let answer = self.came_of(&project, &asked).await?;
        let refreshed = Projector::new(Arc::clone(&self.store), project, PathBuf::from(view.root)).refresh().await;
        if let Err(error) = refreshed {
            tracing::warn!("{error}");
        }
        Ok(answer)
    }

    /// Waits for what comes of it.
    async fn came_of(&self, project: &RunId, asked: &Rollback) -> Result<Answer, StoreError> {
        loop {
            let published = self.store.published(project).await?;
            let view = published.get(RollbackView::KEY).and_then(|view| view.read::<RollbackView>().ok());
            if let Some(view) = view.filter(|view| view.asked.id == asked.id) {
                return Ok(match (view.done, view.problem) {
                    (Some(went), _) => report(Report::RolledBack {
                        to: asked.to.clone(),
                        kept: went.kept,
                        undone: went.undone.iter().map(ToString::to_string).collect(),
                    }),
                    (None, problem) => report(Report::Held { reason: problem.unwrap_or_default() }),
                });
            }
            let stuck = self.engine.as_ref().and_then(|engine| engine.stuck().remove(project));
            if let Some(stop) = stuck {
                return Ok(Answer::Failed { reason: format!("run {project} cannot go on: {stop}") });
            }
            tokio::time::sleep(LOOK).await;
        }
    }
}
