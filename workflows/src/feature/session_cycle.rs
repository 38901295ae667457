//! One cycle of a feature: permission, session, seal, gates. A session is paid only if the gates of
//! the list still fail on the current target, which is merged in first.

use longhaul_engine::{Context, ContextExt, Stop};

use crate::contracts::{Problem, Seal, SealStep, SessionEnding, SessionReason, SessionReport};

use super::block::BlockReason;
use super::hosted::{self, Hosting};
use super::messages::{SessionPermit, SessionResult};
use super::outcome::Landing;
use super::{Stage, Work, claim, session_permit, tree};

/// The end of a cycle.
pub(super) enum CycleEnd {
    /// The gates passed on this commit.
    Passed(String),
    /// The work continues with another session.
    Again,
    /// A limit is reached, or the session is refused.
    GivenUp(BlockReason),
    /// The run landed before, and its gates pass on the target.
    Landed(Landing),
}

/// Runs one cycle: within the limits, with the permission of the project, and on the current
/// target.
pub(super) async fn run(context: &mut dyn Context, work: &mut Work) -> Result<CycleEnd, Stop> {
    // The permit says whether a failed session counts, so the limit is checked after it, too.
    if !work.is_fruitless
        && let Some(end) = give_up(context, work).await?
    {
        return Ok(end);
    }
    if let Some(reason) = admitted(context, work).await? {
        return Ok(CycleEnd::GivenUp(reason));
    }
    if work.is_fruitless
        && let Some(end) = give_up(context, work).await?
    {
        return Ok(end);
    }
    work.take_notes(context).await?;
    if let Some(commit) = on_the_tip(context, work).await? {
        session_permit::report(context, work, SessionResult::Unused).await?;
        return Ok(CycleEnd::Passed(commit));
    }
    run_session(context, work).await
}

/// Gives the work up, if a limit is reached and there are no new notes.
async fn give_up(context: &mut dyn Context, work: &mut Work) -> Result<Option<CycleEnd>, Stop> {
    let Some(reason) = work.exhausted() else { return Ok(None) };
    if work.reason == SessionReason::GatesFailed {
        work.enter(context, Stage::LastTry).await?;
        // Notes stay in the mailbox: they may grant another session.
        work.take_edits(context).await?;
        if let Some(commit) = on_the_tip(context, work).await? {
            return Ok(Some(CycleEnd::Passed(commit)));
        }
    }
    work.enter(context, Stage::GivingUp).await?;
    if work.take_late_notes(context).await? {
        return Ok(None);
    }
    Ok(Some(CycleEnd::GivenUp(reason)))
}

/// Waits until the project grants a session; returns the reason of a refusal.
async fn admitted(context: &mut dyn Context, work: &mut Work) -> Result<Option<BlockReason>, Stop> {
    loop {
        match session_permit::request(context, work).await? {
            SessionPermit::Granted { session, forgiven, agent, available } => {
                work.take_permit(session, forgiven, agent, available);
                return Ok(None);
            }
            SessionPermit::Rebase => {
                tree::refresh(context, work).await?;
                tree::baseline(context, work).await?;
            }
            SessionPermit::Refused { reason } => return Ok(Some(reason)),
        }
    }
}

/// Merges the target before another session; returns the commit if the current gates pass on it.
async fn on_the_tip(context: &mut dyn Context, work: &mut Work) -> Result<Option<String>, Stop> {
    if matches!(work.reason, SessionReason::Start | SessionReason::Continue) {
        return Ok(None);
    }
    let known = match &work.feedback.problem {
        Some(Problem::CheckFailed { merged_with, .. }) => merged_with.clone(),
        _ => None,
    };
    let has_moved = tree::refresh(context, work).await?;
    // The gates have already failed on the result of this merge.
    let is_known = known.is_some() && known == work.tip;
    match (&work.feedback.problem, work.reason) {
        _ if (!has_moved || is_known) && !work.has_edited_checks() => Ok(None),
        (_, SessionReason::Repair) => {
            tree::baseline(context, work).await?;
            Ok(None)
        }
        (Some(Problem::CheckFailed { .. } | Problem::Conflict { .. }), _) => {
            tree::gates(context, work).await
        }
        _ => Ok(None),
    }
}

/// Checks work of this run that is already on the target. This session is not counted. If the gates
/// fail there, the next session repairs the work.
async fn landed(
    context: &mut dyn Context,
    work: &mut Work,
    commit: String,
    files: Vec<String>,
) -> Result<CycleEnd, Stop> {
    work.progress.sessions -= 1;
    work.progress.unused_sessions += 1;
    work.redo = true;
    session_permit::report(context, work, SessionResult::Unused).await?;
    let Some(confirmed) = claim::judge(context, work).await? else { return Ok(CycleEnd::Again) };
    work.files = files;
    Ok(CycleEnd::Landed(Landing { commit, ..confirmed }))
}

/// Runs a session, seals it, and runs the gates if the agent calls the work done.
async fn run_session(context: &mut dyn Context, work: &mut Work) -> Result<CycleEnd, Stop> {
    work.begin_session(context).await?;
    let id = work.granted.take().expect("a session is granted before it begins");
    let session = match hosted::run(context, work, id).await? {
        Hosting::Ended(session) => session,
        Hosting::Cancelled(session) => return Err(seal_cancelled(context, work, session).await),
    };
    if matches!(session.ending, SessionEnding::NotStarted { .. }) {
        work.take_no_session(&session);
        session_permit::report(context, work, SessionResult::of(&session, false)).await?;
        return Ok(CycleEnd::Again);
    }
    if let SessionEnding::Landed { commit, files } = session.ending {
        return landed(context, work, commit, files).await;
    }
    // The work of a paid session is kept, also if the run is cancelled now.
    let sealed = tree::to_its_end::<Seal>(context, work.seal(&session)).await;
    if let Err(Stop::Failed(failure)) = sealed {
        session_permit::report(context, work, SessionResult::of(&session, true)).await?;
        return Err(Stop::Failed(failure));
    }
    let (sealed, is_cancelled) = sealed?;
    let has_changed = sealed.commit != work.commit;
    let result = SessionResult::of(&session, has_changed);
    work.take_session(&session, &sealed);
    work.is_fruitless = matches!(result, SessionResult::Failed { .. });
    session_permit::report(context, work, result).await?;
    if is_cancelled {
        return Err(Stop::Cancelled);
    }
    if session.ending != SessionEnding::ClaimsDone {
        return Ok(CycleEnd::Again);
    }
    work.enter(context, Stage::Gates).await?;
    if let Some(failed) = tree::failed_gate(context, work, &sealed.commit).await? {
        work.count_failed_gate(&failed, None);
        return Ok(CycleEnd::Again);
    }
    Ok(CycleEnd::Passed(sealed.commit))
}

/// Seals the work of a session whose feature was cancelled, for the next run. Work that cannot be
/// sealed stays in the tree; the next run rescues it.
async fn seal_cancelled(
    context: &mut dyn Context,
    work: &mut Work,
    session: Option<SessionReport>,
) -> Stop {
    let done = session.filter(|session| session.ending == SessionEnding::ClaimsDone);
    let seal = done.as_ref().map_or_else(
        || work.seal_as(SealStep::Cancelled { session: work.progress.sessions }),
        |session| work.seal(session),
    );
    match (context.call::<Seal>(seal).await, done) {
        (Ok(_), Some(_)) => {
            let result = SessionResult::Worked { done: true };
            session_permit::report(context, work, result).await.err().unwrap_or(Stop::Cancelled)
        }
        (Ok(_) | Err(Stop::Failed(_)), _) => Stop::Cancelled,
        (Err(stop), _) => stop,
    }
}
