//! Rolling a project back: the one way in which its target branch moves backwards, and the log with
//! it.

use longhaul_engine::{Context, ContextExt, RequestedBy, Stop};
use serde::{Deserialize, Serialize};

use crate::backlog::{FeatureId, FeatureState};
use crate::contracts::{RollBack, RollBackInput, WentBack};

use super::memory::Memory;

/// The signal `rollback`: go back to a commit as soon as nothing is under way. The project stays
/// halted after it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rollback {
    /// What the result is known by.
    pub id: String,
    /// The commit.
    pub to: String,
    /// Who asked for it, and why.
    pub request: RequestedBy,
}

/// Published under [`RollbackView::KEY`]: what came of the last rollback.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RollbackView {
    /// What was asked.
    pub asked: Rollback,
    /// What was done.
    pub done: Option<WentBack>,
    /// Why nothing was done.
    pub problem: Option<String>,
}

impl Rollback {
    /// The name of the signal.
    pub const SIGNAL: &'static str = "rollback";
}

impl RollbackView {
    /// The key that it is published under.
    pub const KEY: &'static str = "rollback";
}

impl Memory {
    pub(super) fn take_rollback(&mut self, rollback: Rollback) {
        self.halt(rollback.request.clone());
        self.rollback = Some(rollback);
    }

    /// Rolls back, if that was asked and no feature is under way any more.
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
        // The last word: whoever waits for it finds all else as it is now.
        self.publish(context).await?;
        context.set(RollbackView::KEY, &RollbackView { asked, done, problem }).await
    }

    fn way_back(&self, to: &str, at: String) -> RollBackInput {
        // A feature that is not in the list now can come back, and its branch with it.
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

    /// What is not on the target any more is to be done again; what was built on it is only a
    /// claim.
    fn undo(&mut self, undone: &[FeatureId]) {
        self.waits_on_next = None;
        for id in undone {
            let record = self.record(id);
            let was_blocked = matches!(record.state, FeatureState::Blocked(_));
            record.commit = None;
            record.files = Vec::new();
            // Nothing of it landed, so nothing of it is undone.
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
