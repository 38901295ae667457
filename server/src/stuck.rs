//! The runs of a log that cannot go on, whether a process runs it or not.

use longhaul_engine::{Engine, EventStore, RunId, Stop, StoreError, Summary, verify};

use crate::status::StuckRun;

use crate::service::Service;

impl Service {
    /// Those that the engine has found, and those whose recorded decisions this program makes otherwise.
    pub(crate) async fn stuck(&self) -> Result<Vec<StuckRun>, StoreError> {
        let mut known = self.engine.as_ref().map(Engine::stuck).unwrap_or_default();
        for (run, summary) in self.store.runs("").await? {
            if !summary.status.is_terminal()
                && !known.contains_key(&run)
                && let Some(stop) = diverges(&*self.store, &run, &summary).await?
            {
                known.insert(run, stop);
            }
        }
        let shown = |(run, stop): (RunId, Stop)| {
            let has_diverged = matches!(stop, Stop::Diverged(_));
            StuckRun { run, reason: stop.to_string(), has_diverged }
        };
        Ok(known.into_iter().map(shown).collect())
    }
}

async fn diverges(store: &dyn EventStore, run: &RunId, summary: &Summary) -> Result<Option<Stop>, StoreError> {
    let segment = store.read(run, summary.origin).await?;
    Ok(match verify(&crate::open::workflows(), run, &segment) {
        Ok(None) => None,
        Ok(Some(diverged)) => Some(Box::new(diverged).into()),
        Err(error) => Some(error.into()),
    })
}
