//! Merging one at a time: the project gives the turn, and with it an integration work tree.
//!
//! The turn saves work; it is not what keeps the target safe. A run never shares its integration
//! work tree, and landing is a compare-and-swap of the tip, so a second run that has a turn does no
//! harm (see `project::queue`).

use longhaul_engine::{Context, ContextExt, Received, RunId, Stop};
use serde::{Deserialize, Serialize};

use crate::backlog::{Check, FeatureId};
use crate::contracts::{Land, Landed};

use super::Work;

/// The signal `ready`: a feature asks its project for the turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ready {
    /// The feature.
    pub feature: FeatureId,
    /// The files that its work changes.
    pub files: Vec<String>,
}

/// The signal `turn`: it may merge now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Turn {
    /// The checks of finished features that it could have broken.
    pub regression: Vec<Check>,
    /// The integration work tree that is this run's alone until it gives the turn back or ends.
    pub tree: u32,
}

impl Ready {
    /// The name of the signal.
    pub const SIGNAL: &'static str = "ready";
}

impl Turn {
    /// The name of the signal that gives the turn.
    pub const GIVEN: &'static str = "turn";
    /// The name of the signal that gives it back without having merged. Its content is the
    /// feature's id.
    pub const GIVEN_BACK: &'static str = "turn_back";
}

/// Asks for the turn and waits for it. Only the project gives it.
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

/// Lets the next one merge.
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
