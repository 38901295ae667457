//! Merging one at a time: the project grants a lease, with an integration work tree.
//!
//! The lease saves work; it does not protect the target. A run never shares its integration work
//! tree, and landing is a compare-and-swap of the tip, so a second run with a lease does no harm
//! (see `project::queue`).

use longhaul_engine::{Context, ContextExt, Received, Stop};
use serde::{Deserialize, Serialize};

use crate::backlog::{Check, FeatureId};
use crate::contracts::{Land, Landed, PassMark};

use super::Work;

/// The signal `merge_request`: a feature requests the merge lease.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MergeRequest {
    /// The feature.
    pub feature: FeatureId,
    /// The files that its work changes.
    pub files: Vec<String>,
}

/// The signal `merge_lease`: the feature may merge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MergeLease {
    /// The checks of finished features that the merge could break.
    pub regression: Vec<Check>,
    /// The integration work tree, exclusive to this run until it returns the lease or ends.
    pub tree: u32,
    /// The features that its commit marks in the list.
    #[serde(default, skip_serializing_if = "PassMark::is_own")]
    pub mark: PassMark,
}

impl MergeRequest {
    /// The name of the signal.
    pub const SIGNAL: &'static str = "merge_request";
}

impl MergeLease {
    /// The name of the signal that grants the lease.
    pub const GRANTED: &'static str = "merge_lease";
    /// The name of the signal that returns the lease without a merge. Its content is the feature's
    /// id.
    pub const RELEASED: &'static str = "merge_lease_released";
}

/// Requests the lease and waits for it. Only the project grants it.
pub(super) async fn acquire(
    context: &mut dyn Context,
    work: &mut Work,
    files: &[String],
) -> Result<MergeLease, Stop> {
    let project = work.project_run()?;
    let request = MergeRequest { feature: work.id(), files: files.to_vec() };
    context.signal(project.clone(), MergeRequest::SIGNAL, &request).await?;
    let filter = Work::notes_and(MergeLease::GRANTED);
    loop {
        match context.receive(&filter, None).await? {
            Some(Received::Signal { name, payload, from })
                if name == MergeLease::GRANTED && from.as_ref() == Some(&project) =>
            {
                return Ok(payload.read()?);
            }
            Some(received) => work.take_note(received),
            None => {}
        }
    }
}

/// Returns the lease.
pub(super) async fn release(context: &mut dyn Context, work: &Work) -> Result<(), Stop> {
    context.signal(work.project_run()?, MergeLease::RELEASED, &work.id()).await
}

/// Lands a checked candidate; `None` if the tip has moved since it was made.
pub(super) async fn land(
    context: &mut dyn Context,
    work: &Work,
    tip: &str,
    candidate: &str,
) -> Result<Option<Landed>, Stop> {
    match context.call::<Land>(work.land(tip, candidate)).await {
        Ok(landed) => Ok(Some(landed)),
        Err(Stop::Failed(failure)) if failure.code.as_deref() == Some(Land::STALE) => Ok(None),
        Err(stop) => Err(stop),
    }
}
