//! Permission for a session. The project grants it: it limits the number of agents, holds back
//! sessions that cannot succeed, and counts failed ones.

use longhaul_engine::{Context, ContextExt, Stop};

use crate::contracts::{SessionEnding, SessionReport};
use crate::prompt;

use super::Work;
use super::messages::{SessionEnded, SessionPermit, SessionRequest, SessionResult};

/// A session that fails sooner may have met an outage, whatever it changed.
const SHORT_MS: u64 = 60_000;

/// Requests a session and waits for the answer.
pub(super) async fn request(
    context: &mut dyn Context,
    work: &mut Work,
) -> Result<SessionPermit, Stop> {
    let project = work.project_run()?;
    context.signal(project, SessionRequest::SIGNAL, &work.request()).await?;
    Ok(work.await_signal(context, SessionPermit::SIGNAL).await?.read()?)
}

/// Reports the outcome of a granted session, also if the run is cancelled now: a paid session whose
/// work is done must be known as such.
pub(super) async fn report(
    context: &mut dyn Context,
    work: &Work,
    result: SessionResult,
) -> Result<(), Stop> {
    let agent = work.input.settings.agent.identity();
    let ended = SessionEnded { agent, result, used: work.used };
    match context.signal(work.project_run()?, SessionEnded::SIGNAL, &ended).await {
        Err(Stop::Cancelled) => {
            context.signal(work.project_run()?, SessionEnded::SIGNAL, &ended).await?;
            Err(Stop::Cancelled)
        }
        sent => sent,
    }
}

impl SessionResult {
    /// The outcome of a session that ran.
    pub(super) fn of(session: &SessionReport, has_changed: bool) -> Self {
        let last_words = prompt::last_words(&session.output_tail);
        match &session.ending {
            SessionEnding::Failed { reason, .. }
                if !has_changed || session.duration_ms < SHORT_MS =>
            {
                let started = has_changed || session.has_working_agent();
                let ending = reason.clone();
                Self::Failed { ending, last_words, started, changed: has_changed }
            }
            SessionEnding::NotStarted { reason } => {
                let ending = reason.clone();
                let last_words = String::new();
                Self::Failed { ending, last_words, started: false, changed: false }
            }
            ending => Self::Worked { done: *ending == SessionEnding::ClaimsDone },
        }
    }
}
