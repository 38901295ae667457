//! The stuck runs of a log, whether a process runs it or not.

use longhaul_engine::{RunId, RunReader, Stop, StoreError, Summary, verify};
use serde::{Deserialize, Serialize};

use crate::perform::request;
use crate::request::RequestError;
use crate::service::Service;
use crate::status::StuckRun;

/// Requests the stuck runs: those that the engine reports, and those whose replay diverges in this
/// program. Each request replays every open run in full.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct StuckRuns {}

request!(StuckRuns, "stuck_runs" -> Vec<StuckRun>, |self, service| self.run(&service).await);

impl StuckRuns {
    async fn run(self, service: &Service) -> Result<Vec<StuckRun>, RequestError> {
        let mut known = service.stuck_in_engine();
        for (run, summary) in service.store.runs("").await? {
            if !summary.status.is_terminal()
                && !known.contains_key(&run)
                && let Some(stop) = diverges(&*service.store, &run, &summary).await?
            {
                known.insert(run, stop);
            }
        }
        Ok(known.iter().map(|(run, stop)| StuckRun::of(run, stop)).collect())
    }
}

async fn diverges(
    store: &dyn RunReader,
    run: &RunId,
    summary: &Summary,
) -> Result<Option<Stop>, StoreError> {
    let segment = store.read(run, summary.origin).await?;
    Ok(match verify(&crate::open::workflows(), run, &segment) {
        Ok(None) => None,
        Ok(Some(diverged)) => Some(Box::new(diverged).into()),
        Err(error) => Some(error.into()),
    })
}
