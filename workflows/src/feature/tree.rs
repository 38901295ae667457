//! Steps on the work tree that need no session: set-up and baseline, merging the target, gates.

use longhaul_engine::{Activity, Context, ContextExt, Stop};

use crate::contracts::{Evidence, RefreshWorktree, RunSetup, StepTree};

use super::{Stage, Work, notice};

/// Sets the work tree up and runs the baseline on its commit.
pub(super) async fn baseline(context: &mut dyn Context, work: &mut Work) -> Result<(), Stop> {
    work.enter(context, Stage::SetUp).await?;
    let setup = context.call::<RunSetup>(work.setup()).await?;
    let checks = work.baseline(&work.commit);
    let report = notice::checks(context, work, checks).await?;
    work.take_baseline(setup.failed().or(report.failed()));
    Ok(())
}

/// Merges the target into the work tree. Returns whether the branch moved.
pub(super) async fn refresh(context: &mut dyn Context, work: &mut Work) -> Result<bool, Stop> {
    let refreshed = context.call::<RefreshWorktree>(work.refresh()).await?;
    let is_edited = refreshed.is_edited;
    let has_moved = work.take_refreshed(refreshed);
    if is_edited {
        work.request_edits(context).await?;
    }
    Ok(has_moved)
}

/// Runs the gates without a session; returns the commit on which they passed. Their failure counts
/// towards no limit.
pub(super) async fn gates(
    context: &mut dyn Context,
    work: &mut Work,
) -> Result<Option<String>, Stop> {
    work.enter(context, Stage::Gates).await?;
    let commit = work.commit.clone();
    let setup = context.call::<RunSetup>(work.merged_setup(StepTree::Feature, &commit)).await?;
    if let Some(failed) = setup.failed() {
        work.record_uncounted_failure(failed);
        return Ok(None);
    }
    if let Some(failed) = failed_gate(context, work, &commit).await? {
        work.record_uncounted_failure(&failed);
        return Ok(None);
    }
    Ok(Some(commit))
}

/// Runs the gates; returns the failed one. If they were edited meanwhile, they run again: a failure
/// of the old ones must not cost a session. What passes is compared with the list when it lands.
pub(super) async fn failed_gate(
    context: &mut dyn Context,
    work: &mut Work,
    commit: &str,
) -> Result<Option<Evidence>, Stop> {
    loop {
        let gates = work.gates(commit);
        let checks = gates.checks.clone();
        let report = notice::checks(context, work, gates).await?;
        let Some(failed) = report.failed() else { return Ok(None) };
        work.take_edits(context).await?;
        if work.gates(commit).checks == checks {
            return Ok(Some(failed.clone()));
        }
    }
}

/// Calls an activity, and once more if the run is cancelled meanwhile; returns whether it was.
pub(super) async fn to_its_end<A: Activity<Input: Clone>>(
    context: &mut dyn Context,
    input: A::Input,
) -> Result<(A::Output, bool), Stop> {
    match context.call::<A>(input.clone()).await {
        Err(Stop::Cancelled) => Ok((context.call::<A>(input).await?, true)),
        output => Ok((output?, false)),
    }
}
