//! Steering from within a session: refused, and told to the operator.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use chrono::Utc;
use longhaul_activities::process::call_of;
use longhaul_engine::RunId;

use crate::error::{Error, Result};
use crate::request::RequestError;

/// How many refusals are kept.
const KEPT: usize = 100;

/// What sessions asked for and were refused since this process runs the log, the last of it.
#[derive(Debug, Default)]
pub(crate) struct Refused(Mutex<Vec<(String, String)>>);

impl Refused {
    fn add(&self, call: &str, text: String) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() == KEPT {
            kept.remove(0);
        }
        kept.push((call.to_owned(), text));
    }

    /// What was refused to sessions of a project.
    pub(crate) fn below(&self, project: &RunId) -> Vec<String> {
        let prefix = format!("{project}/");
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.iter().filter(|(call, _)| call.starts_with(&prefix)).map(|(_, text)| text.clone()).collect()
    }
}

/// Refuses a command that changes a data directory without asking its owner, if a session runs it.
pub fn refuse_within_session(verb: &str, data_dir: &Path) -> Result<()> {
    match call_of(std::process::id().cast_signed(), data_dir) {
        Some(call) => Err(Error::usage(reason(verb, &call))),
        None => Ok(()),
    }
}

fn reason(verb: &str, call: &str) -> String {
    format!("`longhaul {verb}` was asked for from within the session {call}: agents and checks cannot steer runs")
}

/// Why a session may not make a request; `None`: it may be performed. `command` is what the request changes, `pid` the
/// process that makes it; `None` where the system does not tell.
pub(crate) fn refusal(
    command: Option<&'static str>,
    pid: Option<i32>,
    data_dir: &Path,
    refused: Option<&Refused>,
) -> Option<RequestError> {
    let verb = command?;
    let call = call_of(pid?, data_dir)?;
    let reason = reason(verb, &call);
    tracing::warn!(verb, call, "steering from within a session was refused");
    if let Some(refused) = refused {
        let at = Utc::now().format("%Y-%m-%d %H:%M:%S");
        refused.add(&call, format!("{at} {verb}, asked for from within {call}"));
    }
    Some(RequestError::Refused { reason })
}
