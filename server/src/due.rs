//! When runs have work: now, or at a time.

use chrono::{DateTime, TimeDelta, Utc};
use longhaul_engine::{Engine, RunId, Status};
use serde::{Deserialize, Serialize};
use tokio::sync::broadcast::error::TryRecvError;

use crate::head::RunHead;
use crate::perform::request;
use crate::request::RequestError;
use crate::service::Service;

/// A wait that is not worth a new process: work due within it counts as work now.
const SOON: TimeDelta = TimeDelta::seconds(10);

/// When these runs, with all runs below them, have work.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ShowDue {
    /// The runs.
    pub runs: Vec<RunId>,
}

/// When runs have work.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Due {
    /// Whether there is work now, or within seconds.
    pub is_now: bool,
    /// The earliest time at which a run continues by itself.
    pub at: Option<DateTime<Utc>>,
}

request!(ShowDue, "due" -> Due, |self, service| {
    self.run(&service).await
});

impl ShowDue {
    async fn run(self, service: &Service) -> Result<Due, RequestError> {
        // A message on its way from one run to another is seen at neither of them if it is sent
        // while they are read: an answer holds only if nothing changed meanwhile.
        let mut changes = service.engine.as_ref().map(Engine::changes);
        let soon = Utc::now() + SOON;
        let mut due = Due::default();
        let stuck = service.stuck_in_engine();
        for root in &self.runs {
            for (run, summary) in service.store.runs(root.as_str()).await? {
                let is_closed = summary.status.is_terminal();
                if is_closed || !run.is_within(root.as_str()) || stuck.contains_key(&run) {
                    continue;
                }
                let Some(head) = RunHead::of(&*service.store, &run).await? else { continue };
                match head.summary.status {
                    Status::Waiting { until: Some(at), .. } if !head.has(|_| true) => {
                        due.is_now |= at <= soon;
                        due.at = Some(due.at.map_or(at, |earlier| earlier.min(at)));
                    }
                    _ => due.is_now |= head.is_active(true),
                }
            }
        }
        let is_unchanged = changes
            .as_mut()
            .is_none_or(|changes| matches!(changes.try_recv(), Err(TryRecvError::Empty)));
        due.is_now |= !is_unchanged;
        Ok(due)
    }
}
