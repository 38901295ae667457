//! Merging one at a time: the project grants a lease, with an integration work tree.
//!
//! The lease saves work; it does not protect the target. A run never shares its integration work
//! tree, and landing is a compare-and-swap of the tip, so a second run with a lease does no harm
//! (see `project::queue`).

use longhaul_engine::{Context, ContextExt, Stop};

use crate::contracts::{Land, Landed};

use super::Work;
use super::messages::MergeLease;
use super::messages::MergeRequest;

/// Requests the lease and waits for it. Only the project grants it.
pub(super) async fn acquire(
    context: &mut dyn Context,
    work: &mut Work,
    files: &[String],
) -> Result<MergeLease, Stop> {
    let project = work.project_run()?;
    let request = MergeRequest { feature: work.id(), files: files.to_vec() };
    context.signal(project, MergeRequest::SIGNAL, &request).await?;
    Ok(work.await_signal(context, MergeLease::GRANTED).await?.read()?)
}

/// Returns the lease.
pub(super) async fn release(context: &mut dyn Context, work: &Work) -> Result<(), Stop> {
    context.signal(work.project_run()?, MergeLease::RELEASED, &work.id()).await
}

/// Lands a checked candidate; `None` if the tip has moved since it was made, or if its checks were
/// edited since they passed.
pub(super) async fn land(
    context: &mut dyn Context,
    work: &mut Work,
    tip: &str,
    candidate: &str,
) -> Result<Option<Landed>, Stop> {
    let mut version = Some(work.version());
    loop {
        let failure = match context.call::<Land>(work.land(tip, candidate, version.take())).await {
            Ok(landed) => return Ok(Some(landed)),
            Err(Stop::Failed(failure)) => failure,
            Err(stop) => return Err(stop),
        };
        match failure.code.as_deref() {
            Some(Land::STALE) => return Ok(None),
            Some(Land::EDITED) if work.request_edits(context).await? => return Ok(None),
            // The project has overridden the gates, or cannot read the list: its version counts.
            Some(Land::EDITED) => {}
            _ => return Err(Stop::Failed(failure)),
        }
    }
}
