//! Rollback of a project: the only way to move its target branch and its log backwards.

use longhaul_engine::{Context, ContextExt, RequestedBy, Stop};
use serde::{Deserialize, Serialize};

use crate::backlog::{FeatureId, FeatureState};
use crate::contracts::{RollBack, RollBackInput, WentBack};

use super::state::ProjectRun;

/// The signal `rollback`: return to a commit as soon as no feature is in progress. The project
/// stays halted after it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rollback {
    /// The id of the request, repeated in the result.
    pub id: String,
    /// The target commit.
    pub to: String,
    /// The requester and the reason.
    pub request: RequestedBy,
}

/// Published under [`RollbackView::KEY`]: the result of the last rollback.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RollbackView {
    /// The request.
    pub asked: Rollback,
    /// The output of the rollback, if it succeeded.
    pub done: Option<WentBack>,
    /// The reason of a refusal.
    pub problem: Option<String>,
    /// The last sync before it.
    #[serde(default)]
    pub synced: String,
}

impl Rollback {
    /// The name of the signal.
    pub const SIGNAL: &'static str = "rollback";
}

impl RollbackView {
    /// The key under which it is published.
    pub const KEY: &'static str = "rollback";
}

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
        let Some(asked) = self.rollback.take() else { return Ok(()) };
        let at = context.now().await?.format("%Y%m%dT%H%M%S%3fZ").to_string();
        let (done, problem) = match context.call::<RollBack>(self.way_back(&asked.to, at)).await {
            Ok(went) => (Some(went), None),
            Err(Stop::Failed(failure)) => (None, Some(failure.message)),
            Err(stop) => return Err(stop),
        };
        if let Some(went) = &done {
            self.undo(&went.undone);
        }
        // Published last: a reader that waits for it finds all other values up to date.
        self.publish(context).await?;
        let view = RollbackView { asked, done, problem, synced: self.synced.clone() };
        context.set(RollbackView::KEY, &view).await
    }

    fn way_back(&self, to: &str, at: String) -> RollBackInput {
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
