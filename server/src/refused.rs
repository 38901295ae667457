//! Refuses steering from within a session, and records the attempt in the run of its feature.

use std::path::Path;
use std::sync::PoisonError;

use longhaul_activities::files::placed::{self, Links};
use longhaul_activities::process::call_of;
use longhaul_engine::{Payload, RunId};
use longhaul_workflows::feature::feature_run;
use longhaul_workflows::finding::SteeringRefused;

use crate::error::{Error, Result};
use crate::request::RequestError;
use crate::service::Service;

/// A request from a program that may not make it.
pub(crate) struct Refusal(SteeringRefused);

/// Refuses a command of a session that changes a data directory without its owner.
pub fn refuse_within_session(verb: &'static str, data_dir: &Path) -> Result<()> {
    let refusal = refusal(Some(verb), Some(std::process::id().cast_signed()), data_dir);
    refusal.map_or(Ok(()), |refusal| Err(Error::Request(refusal.error())))
}

/// Refuses a command of a session whose log the sandbox hides.
pub(crate) fn refuse_hidden_log(data_dir: &Path) -> Result<()> {
    let pid = std::process::id().cast_signed();
    refused_read(Some(pid), data_dir).map_or(Ok(()), |refused| Err(Error::Request(refused)))
}

/// The refusal of a read from within a session.
pub(crate) fn refused_read(pid: Option<i32>, data_dir: &Path) -> Option<RequestError> {
    let call = call_of(pid?, data_dir)?;
    Some(RequestError::refused(format!(
        "the log in {} is out of reach of the session {call}: agents and checks neither read nor \
         steer runs",
        data_dir.display()
    )))
}

/// Refuses a command of a session whose sandbox keeps it from the log.
pub fn refuse_out_of_reach(data_dir: &Path) -> Result<()> {
    match placed::open(&data_dir.join("lock"), Links::Followed) {
        Ok(Some(_)) => Ok(()),
        _ => refuse_hidden_log(data_dir),
    }
}

/// Whether a request must be refused. `command` is the change that it makes, `pid` its process
/// (`None` where the system does not report it).
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
    /// The error text for the program.
    pub(crate) fn error(&self) -> RequestError {
        let SteeringRefused { verb, call } = &self.0;
        RequestError::refused(format!(
            "`longhaul {verb}` was asked for from within the session {call}: agents and checks \
             cannot steer runs"
        ))
    }

    /// Records the attempt in the run of the feature of the session.
    pub(crate) async fn record(self, service: &Service) {
        let SteeringRefused { verb, call } = &self.0;
        let run = call.rsplit_once('@').and_then(|(run, _)| RunId::new(run).ok());
        let Some(run) = run.as_ref().map(feature_run) else { return };
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
