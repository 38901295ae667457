//! Steering from within a session: refused, and recorded in the run whose program tried it.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use longhaul_activities::process::call_of;
use longhaul_engine::{Payload, RunId};
use longhaul_workflows::finding::SteeringRefused;

use super::desk::{Answer, Ask, Desk};

/// What was recorded since this process runs the log: once for each verb and call, however often a program asks.
#[derive(Debug, Default)]
pub(super) struct Recorded(Mutex<BTreeSet<(String, String)>>);

/// A request that a program has no right to.
pub(super) struct Refusal(SteeringRefused);

/// Whether a request is one that a session has no right to. `pid` is that of the process that asks; `None` where the
/// system does not tell.
pub(super) fn refusal(ask: &Ask, pid: Option<i32>, data_dir: &Path) -> Option<Refusal> {
    let verb = ask.steers()?;
    let call = call_of(pid?, data_dir)?;
    tracing::warn!(verb, call, "steering from within a session was refused");
    Some(Refusal(SteeringRefused { verb: verb.to_string(), call }))
}

impl Refusal {
    /// What the program is told.
    pub(super) fn answer(&self) -> Answer {
        let SteeringRefused { verb, call } = &self.0;
        let reason = format!(
            "`longhaul {verb}` was asked for from within the session {call}: agents and checks cannot steer runs"
        );
        Answer::Refused { reason }
    }

    /// Tells the run that one of its programs tried it.
    pub(super) async fn record(self, desk: &Desk) {
        let SteeringRefused { verb, call } = &self.0;
        let Some(run) = call.rsplit_once('@').and_then(|(run, _)| RunId::new(run).ok()) else { return };
        let is_new = {
            let mut recorded = desk.refused.0.lock().unwrap_or_else(PoisonError::into_inner);
            recorded.insert((verb.clone(), call.clone()))
        };
        let Some(engine) = desk.engine.as_ref().filter(|_| is_new) else { return };
        if let Err(error) = engine.signal(&run, SteeringRefused::SIGNAL, Payload::of(&self.0)).await {
            tracing::warn!(%run, "the refusal could not be recorded: {error}");
        }
    }
}
