//! Rolling a project back: the one way in which its target branch moves backwards, and the log with it.

use longhaul_engine::{Context, ContextExt, Request, Stop};
use serde::{Deserialize, Serialize};

use crate::backlog::{FeatureId, FeatureState};
use crate::contracts::{RollBack, RollBackInput, WentBack};

use super::memory::Memory;

/// The signal `rollback`: go back to a commit as soon as nothing is under way. The project stays halted after it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rollback {
    /// What the result is known by.
    pub id: String,
    /// The commit.
    pub to: String,
    /// Who asked for it, and why.
    pub request: Request,
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
        if self.backlog.counts().in_progress > 0 {
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
        let landed = self.records.iter().filter_map(|(id, record)| Some((id.clone(), record.commit.clone()?)));
        let pending = self.backlog.iter().filter(|(_, state)| **state != FeatureState::Passed);
        let open = pending.filter_map(|(feature, _)| Some((feature.id.clone(), self.run_of(&feature.id)?)));
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

    /// What is not on the target any more is to be done again; what was built on it is only a claim.
    fn undo(&mut self, undone: &[FeatureId]) {
        self.waits_on_next = None;
        for id in undone {
            let was_blocked = matches!(self.backlog.state(id), Some(FeatureState::Blocked(_)));
            let record = self.record(id);
            record.commit = None;
            record.files = Vec::new();
            record.claimed = false;
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
