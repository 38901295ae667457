//! Rollback of a project: the only way to move its target branch and its log backwards.

use longhaul_engine::{Context, ContextExt, Stop};

use crate::backlog::{FeatureId, FeatureState};
use crate::contracts::{RollBack, RollBackInput};

use super::state::ProjectRun;
use super::view::Rollback;
use super::view::RollbackView;

impl ProjectRun {
    pub(super) fn take_rollback(&mut self, rollback: Rollback) {
        self.halt(rollback.request.clone());
        self.rollback = Some(rollback);
    }

    /// Rolls back, if requested and no feature is in progress.
    pub(super) async fn roll_back(&mut self, context: &mut dyn Context) -> Result<(), Stop> {
        if !self.current.is_empty() {
            return Ok(());
        }
        let Some(rollback) = self.rollback.take() else { return Ok(()) };
        let at = context.now().await?.format("%Y%m%dT%H%M%S%3fZ").to_string();
        let (done, problem) =
            match context.call::<RollBack>(self.rollback_input(&rollback.to, at)).await {
                Ok(went) => (Some(went), None),
                Err(Stop::Failed(failure)) => (None, Some(failure.message)),
                Err(stop) => return Err(stop),
            };
        if let Some(went) = &done {
            self.undo(&went.undone);
        }
        // Published last: a reader that waits for it finds all other values up to date.
        self.publish(context).await?;
        let view = RollbackView { rollback, done, problem, synced: self.synced.clone() };
        context.set(RollbackView::KEY, &view).await
    }

    fn rollback_input(&self, to: &str, at: String) -> RollBackInput {
        // A removed feature can return, and its branch with it.
        let gone = self.gone.iter().map(|(id, gone)| (id, &gone.record));
        let records = || self.records.iter().chain(gone.clone());
        let landed =
            records().filter_map(|(id, record)| Some((id.clone(), record.commit.clone()?)));
        let pending =
            records().filter(|(_, record)| record.state != FeatureState::Passed && record.runs > 0);
        let open =
            pending.filter_map(|(id, record)| Some((id.clone(), self.run(id, record.runs)?)));
        RollBackInput {
            project: self.project.clone(),
            target: self.target.clone(),
            to: to.to_owned(),
            list_file: self.list_file.clone(),
            at,
            landed: landed.collect(),
            open: open.collect(),
        }
    }

    /// Features undone on the target become pending; their dependents become claims.
    fn undo(&mut self, undone: &[FeatureId]) {
        self.take_waits(None);
        for id in undone {
            let record = self.record(id);
            let was_blocked = matches!(record.state, FeatureState::Blocked(_));
            record.commit = None;
            record.files = Vec::new();
            // None of its work landed, so none is undone.
            record.claimed = std::mem::take(&mut record.by_claim);
            record.invalidated = None;
            if !was_blocked {
                self.set(id, FeatureState::Pending);
            }
        }
        for id in undone {
            self.invalidate_below(id);
        }
    }
}
