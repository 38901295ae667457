//! Questions of sessions to people.

use longhaul_engine::{RunId, RunReader, StoreError};
use longhaul_workflows::session::SessionProgress;

/// The published progress of a session run; `None` if it has published none.
pub(crate) async fn progress(
    store: &dyn RunReader,
    run: &RunId,
) -> Result<Option<SessionProgress>, StoreError> {
    let published = store.published(run).await?;
    Ok(published.get(SessionProgress::KEY).and_then(|value| value.read().ok()))
}
