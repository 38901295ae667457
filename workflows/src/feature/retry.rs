//! Another session, unless the current target and the current checks suffice: the target is merged
//! in first, and a session is paid only if the checks of the list still fail.

use longhaul_engine::{Context, ContextExt, Stop};

use crate::contracts::{Problem, Seal, SessionEnding, SessionReason, SessionReport};

use super::hosted::{self, Hosting};
use super::messages::{SessionPermit, SessionResult};
use super::outcome::Landing;
use super::{Stage, Work, claim, session_permit, tree};

/// The result of a try.
pub(super) enum Try {
    /// The gates passed on this commit.
    Passed(String),
    /// The work continues with another session.
    Again,
    /// A limit is reached, or the session is refused.
    GivenUp(String),
    /// The run landed before, and its gates pass on the target.
    Landed(Landing),
}

/// Makes one more try: within the limits, with the permission of the project, and on the current
/// target.
pub(super) async fn once(context: &mut dyn Context, work: &mut Work) -> Result<Try, Stop> {
    // Whether an unsuccessful session counts is known when the next one is granted.
    if !work.is_fruitless
        && let Some(end) = give_up(context, work).await?
    {
        return Ok(end);
    }
    if let Some(reason) = admitted(context, work).await? {
        return Ok(Try::GivenUp(reason));
    }
    if work.is_fruitless
        && let Some(end) = give_up(context, work).await?
    {
        return Ok(end);
    }
    work.take_notes(context).await?;
    if let Some(commit) = on_the_tip(context, work).await? {
        session_permit::report(context, work, SessionResult::Unused).await?;
        return Ok(Try::Passed(commit));
    }
    pay(context, work).await
}

/// Gives the work up, if a limit is reached and there are no new notes.
async fn give_up(context: &mut dyn Context, work: &mut Work) -> Result<Option<Try>, Stop> {
    let Some(reason) = work.exhausted() else { return Ok(None) };
    if work.reason == SessionReason::GatesFailed {
        work.enter(context, Stage::LastTry).await?;
        if let Some(commit) = on_the_tip(context, work).await? {
            return Ok(Some(Try::Passed(commit)));
        }
    }
    work.enter(context, Stage::GivingUp).await?;
    if work.is_told_more(context).await? {
        return Ok(None);
    }
    Ok(Some(Try::GivenUp(reason)))
}

/// Waits until the project grants a session; returns the reason of a refusal.
async fn admitted(context: &mut dyn Context, work: &mut Work) -> Result<Option<String>, Stop> {
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
            SessionPermit::Refused { reason, over_limit } => {
                work.over_limit = over_limit;
                return Ok(Some(reason));
            }
        }
    }
}

/// Merges the target before a retry; returns the commit if its gates, which may have been edited,
/// now pass without another session.
async fn on_the_tip(context: &mut dyn Context, work: &mut Work) -> Result<Option<String>, Stop> {
    if matches!(work.reason, SessionReason::Start | SessionReason::Continue) {
        return Ok(None);
    }
    work.take_edits(context).await?;
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

/// Checks work of this run that is already on the target. No session was used; if the gates fail
/// there, the next one is.
async fn landed(
    context: &mut dyn Context,
    work: &mut Work,
    commit: String,
    files: Vec<String>,
) -> Result<Try, Stop> {
    work.progress.sessions -= 1;
    work.progress.unused_sessions += 1;
    work.redo = true;
    session_permit::report(context, work, SessionResult::Unused).await?;
    let Some(confirmed) = claim::judge(context, work).await? else { return Ok(Try::Again) };
    work.files = files;
    Ok(Try::Landed(Landing { commit, ..confirmed }))
}

/// Runs a session, seals it, and runs the gates if the agent calls the work done.
async fn pay(context: &mut dyn Context, work: &mut Work) -> Result<Try, Stop> {
    work.begin_session(context).await?;
    let id = work.granted.take().expect("a session is granted before it begins");
    let session = match hosted::run(context, work, id).await? {
        Hosting::Ended(session) => session,
        Hosting::Cancelled(session) => return Err(cut_off(context, work, session).await),
    };
    if matches!(session.ending, SessionEnding::NotStarted { .. }) {
        work.take_no_session(&session);
        session_permit::report(context, work, SessionResult::of(&session, false)).await?;
        return Ok(Try::Again);
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
        return Ok(Try::Again);
    }
    work.enter(context, Stage::Gates).await?;
    if let Some(failed) = tree::failed_gate(context, work, &sealed.commit).await? {
        work.take_failed_gate(&failed, None);
        return Ok(Try::Again);
    }
    Ok(Try::Passed(sealed.commit))
}

/// Seals the work of a session whose feature was cancelled, for the next run. Work that cannot be
/// sealed stays in the tree; the next run rescues it.
async fn cut_off(
    context: &mut dyn Context,
    work: &mut Work,
    session: Option<SessionReport>,
) -> Stop {
    let done = session.filter(|session| session.ending == SessionEnding::ClaimsDone);
    let step = format!("session {}, cancelled", work.progress.sessions);
    let seal = done.as_ref().map_or_else(|| work.seal_as(&step), |session| work.seal(session));
    match (context.call::<Seal>(seal).await, done) {
        (Ok(_), Some(_)) => {
            let result = SessionResult::Worked { done: true };
            session_permit::report(context, work, result).await.err().unwrap_or(Stop::Cancelled)
        }
        (Ok(_) | Err(Stop::Failed(_)), _) => Stop::Cancelled,
        (Err(stop), _) => stop,
    }
}
