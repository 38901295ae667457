//! Merging one at a time: the project grants the turn, with an integration work tree.
//!
//! The turn saves work; it does not protect the target. A run never shares its integration work
//! tree, and landing is a compare-and-swap of the tip, so a second run with a turn does no harm
//! (see `project::queue`).

use longhaul_engine::{Context, ContextExt, Received, RunId, Stop};
use serde::{Deserialize, Serialize};

use crate::backlog::{Check, FeatureId};
use crate::contracts::{Land, Landed, Mark};

use super::Work;

/// The signal `ready`: a feature requests the merge turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ready {
    /// The feature.
    pub feature: FeatureId,
    /// The files that its work changes.
    pub files: Vec<String>,
}

/// The signal `turn`: the feature may merge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Turn {
    /// The checks of finished features that the merge could break.
    pub regression: Vec<Check>,
    /// The integration work tree, exclusive to this run until it returns the turn or ends.
    pub tree: u32,
    /// The features that its commit marks in the list.
    #[serde(default, skip_serializing_if = "Mark::is_own")]
    pub mark: Mark,
}

impl Ready {
    /// The name of the signal.
    pub const SIGNAL: &'static str = "ready";
}

impl Turn {
    /// The name of the signal that grants the turn.
    pub const GIVEN: &'static str = "turn";
    /// The name of the signal that returns the turn without a merge. Its content is the feature's
    /// id.
    pub const GIVEN_BACK: &'static str = "turn_back";
}

/// Requests the turn and waits for it. Only the project grants it.
pub(super) async fn take(
    context: &mut dyn Context,
    work: &mut Work,
    files: &[String],
) -> Result<Turn, Stop> {
    let project = project(work)?;
    let ready = Ready { feature: work.id(), files: files.to_vec() };
    context.signal(project.clone(), Ready::SIGNAL, &ready).await?;
    let filter = Work::notes_and(Turn::GIVEN);
    loop {
        match context.receive(&filter, None).await? {
            Some(Received::Signal { name, payload, from })
                if name == Turn::GIVEN && from.as_ref() == Some(&project) =>
            {
                return Ok(payload.read()?);
            }
            Some(received) => work.take_note(received),
            None => {}
        }
    }
}

/// Returns the turn.
pub(super) async fn give_back(context: &mut dyn Context, work: &Work) -> Result<(), Stop> {
    context.signal(project(work)?, Turn::GIVEN_BACK, &work.id()).await
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

pub(super) fn project(work: &Work) -> Result<RunId, Stop> {
    RunId::new(work.brief.project.id.clone())
        .map_err(|error| Stop::Failed(longhaul_engine::Failure::terminal(error.to_string())))
}
