//! The points that a run can return to: its sealed steps and its checkpoints.

use longhaul_activities::git::{StoreCheckpoint, StoredCheckpoint};
use longhaul_engine::{Event, EventKind, RunId};
use longhaul_workflows::contracts::ProjectRef;
use longhaul_workflows::feature::{Checkpoint, CheckpointStep, FeatureInput, checkpoints, prefix};

use crate::pruned;
use crate::run_kind::RunKind;

use super::{RewindPoint, TakeCheckpoint, TakenCheckpoint};
use crate::request::RequestError;
use crate::service::Service;

impl Service {
    pub(crate) async fn checkpoint(
        &self,
        request: TakeCheckpoint,
    ) -> Result<TakenCheckpoint, RequestError> {
        let TakeCheckpoint { run, note, request } = request;
        let origin = self.origin(&run).await?;
        let run = origin.run;
        let last = origin.last.run;
        if run != last {
            return Err(RequestError::refused(format!(
                "{run} is over, and the work tree is that of {last}"
            )));
        }
        let position = origin.segment.last().map_or(0, |event| event.position);
        let project = origin.input.project;
        let feature = origin.input.feature.id;
        let keep = StoreCheckpoint { project, feature, run: run.clone(), position, note, request };
        match self.git.keep_checkpoint(&keep).await? {
            Some(StoredCheckpoint { number, commit, .. }) => {
                let is_open = !origin.last.summary.status.is_terminal();
                Ok(TakenCheckpoint { run, number, commit, is_open })
            }
            None => Err(RequestError::refused(format!(
                "{run} has no work tree now: there is nothing to keep"
            ))),
        }
    }

    pub(crate) async fn checkpoints(
        &self,
        target: &RunId,
    ) -> Result<Vec<RewindPoint>, RequestError> {
        if let Some(summary) = self.store.summary(target).await?
            && let Some(at) = summary.pruned_at()
        {
            return Err(RequestError::refused(pruned::refusal(target, at)));
        }
        let mut rows = Vec::new();
        for (run, summary) in self.store.runs(target.as_str()).await? {
            if run.is_within(target.as_str()) && RunKind::of(&summary) == RunKind::Feature {
                let segment = self.store.read(&run, summary.origin).await?;
                rows.extend(self.rows(&run, &segment).await);
            }
        }
        if rows.is_empty() && self.store.summary(target).await?.is_none() {
            return Err(RequestError::UnknownRun { run: target.clone() });
        }
        Ok(rows)
    }

    async fn rows(&self, run: &RunId, segment: &[Event]) -> Vec<RewindPoint> {
        let sealed = checkpoints(segment).into_iter().map(|checkpoint| {
            let name = checkpoint
                .session
                .map_or_else(|| checkpoint.position.to_string(), |n| format!("session:{n}"));
            let fork = prefix(segment, checkpoint.position).position == checkpoint.position;
            RewindPoint {
                run: run.clone(),
                name,
                fork,
                rollback: checkpoint.is_landing(),
                checkpoint,
            }
        });
        let mut rows: Vec<RewindPoint> = sealed.collect();
        let Some(project) = project_of(segment) else { return rows };
        // A missing checkout has no refs, but the history still exists.
        let kept = self.git.kept_checkpoints(&project, run).await.unwrap_or_default();
        rows.extend(kept.into_iter().map(
            |StoredCheckpoint { number, position, at, commit, note }| {
                let name = format!("checkpoint:{number}");
                let run = run.clone();
                let checkpoint = Checkpoint {
                    position,
                    at,
                    commit,
                    session: None,
                    step: CheckpointStep::Taken(note),
                };
                RewindPoint { run, name, fork: true, rollback: false, checkpoint }
            },
        ));
        rows.sort_by_key(|row| row.checkpoint.position);
        rows
    }
}

fn project_of(segment: &[Event]) -> Option<ProjectRef> {
    let EventKind::RunStarted { input, .. } = &segment.first()?.kind else { return None };
    Some(input.read::<FeatureInput>().ok()?.project)
}
