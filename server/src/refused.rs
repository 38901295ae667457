//! Steering from within a session: refused, and recorded in the run whose program tried it.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use longhaul_activities::process::call_of;
use longhaul_engine::{Payload, RunId};
use longhaul_workflows::finding::SteeringRefused;

use crate::error::{Error, Result};
use crate::request::RequestError;
use crate::service::Service;

/// What was recorded since this process runs the log: once for each verb and call, however often a
/// program asks.
#[derive(Debug, Default)]
pub(crate) struct Recorded(Mutex<BTreeSet<(String, String)>>);

/// A request that a program has no right to.
pub(crate) struct Refusal(SteeringRefused);

/// Refuses a command that changes a data directory without asking its owner, if a session runs it.
pub fn refuse_within_session(verb: &'static str, data_dir: &Path) -> Result<()> {
    let refusal = refusal(Some(verb), Some(std::process::id().cast_signed()), data_dir);
    refusal.map_or(Ok(()), |refusal| Err(Error::Request(refusal.error())))
}

/// Refuses any command on a log that cannot be seen, if a session of its owner runs the command.
pub(crate) fn refuse_hidden_log(data_dir: &Path) -> Result<()> {
    let Some(call) = call_of(std::process::id().cast_signed(), data_dir) else { return Ok(()) };
    let message = format!(
        "the log in {} is out of reach of the session {call}: agents and checks neither read nor steer runs",
        data_dir.display()
    );
    Err(Error::Request(RequestError::refused(message)))
}

/// Whether a request is one that a session has no right to. `command` is what the request changes,
/// `pid` the process that makes it; `None` where the system does not tell.
pub(crate) fn refusal(
    command: Option<&'static str>,
    pid: Option<i32>,
    data_dir: &Path,
) -> Option<Refusal> {
    let verb = command?;
    let call = call_of(pid?, data_dir)?;
    tracing::warn!(verb, call, "steering from within a session was refused");
    Some(Refusal(SteeringRefused { verb: verb.to_string(), call }))
}

impl Refusal {
    /// What the program is told.
    pub(crate) fn error(&self) -> RequestError {
        let SteeringRefused { verb, call } = &self.0;
        RequestError::refused(format!(
            "`longhaul {verb}` was asked for from within the session {call}: agents and checks cannot steer runs"
        ))
    }

    /// Tells the run that one of its programs tried it.
    pub(crate) async fn record(self, service: &Service) {
        let SteeringRefused { verb, call } = &self.0;
        let Some(run) = call.rsplit_once('@').and_then(|(run, _)| RunId::new(run).ok()) else {
            return;
        };
        let is_new = {
            let mut recorded = service.refused.0.lock().unwrap_or_else(PoisonError::into_inner);
            recorded.insert((verb.clone(), call.clone()))
        };
        let Some(engine) = service.engine.as_ref().filter(|_| is_new) else { return };
        if let Err(error) = engine.signal(&run, SteeringRefused::SIGNAL, Payload::of(&self.0)).await
        {
            tracing::warn!(%run, "the refusal could not be recorded: {error}");
        }
    }
}
