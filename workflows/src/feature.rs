//! What happens to a feature, from its first work tree to the target branch.
//!
//! Nothing here touches the world: every `call` is an activity whose result is in the log before the next line runs. After
//! a crash this function runs again from the top, is answered from the log, and goes on where the log ends.

mod approval;
mod note;
mod outcome;
mod steps;
mod turn;
mod work;

use async_trait::async_trait;
use longhaul_engine::{Context, ContextExt, Ending, Payload, Stop, Workflow};

use crate::contracts::{
    CloseInput, CloseWorktree, Evidence, MergeCandidate, Merged, OpenInput, OpenWorktree, RunChecks, RunSession,
    RunSetup, Seal, SessionEnding, SessionReason,
};

pub use approval::{Approval, Awaited};
pub use note::Note;
pub use outcome::{Brief, FeatureOutcome, FeatureProgress};
pub use steps::{COPIED, Checkpoint, FORKED_FROM, Prefix, before_hearing, checkpoints, prefix};
pub use turn::{Ready, Turn};
use work::Work;

/// The workflow `feature`: one run for each try at a feature.
#[derive(Debug, Clone, Copy)]
pub struct FeatureWorkflow;

impl FeatureWorkflow {
    /// Its name in histories.
    pub const NAME: &'static str = "feature";
}

#[async_trait]
impl Workflow for FeatureWorkflow {
    async fn run(&self, context: &mut dyn Context, input: Payload) -> Result<Ending, Stop> {
        let brief: Brief = input.read()?;
        let mut work = Work::new(brief);
        let outcome = match feature(context, &mut work).await {
            Err(Stop::Failed(failure)) => work.blocked(failure.message),
            other => other?,
        };
        Ok(Ending::Complete(Payload::of(&outcome)))
    }
}

async fn feature(context: &mut dyn Context, work: &mut Work) -> Result<FeatureOutcome, Stop> {
    work.step(context, "work tree").await?;
    let open = OpenInput { project: work.project(), target: work.target(), feature: work.id() };
    let worktree = context.call::<OpenWorktree>(open).await?;
    work.take_worktree(&worktree);

    work.step(context, "set-up").await?;
    let setup = context.call::<RunSetup>(work.setup()).await?;
    let baseline = context.call::<RunChecks>(work.baseline(&worktree.head)).await?;
    work.take_baseline(setup.failed().or(baseline.failed()));

    if work.brief.claimed {
        work.step(context, "gates").await?;
        let gates = context.call::<RunChecks>(work.gates(&worktree.head)).await?;
        match gates.failed() {
            None => return close(context, work, worktree.head, None).await,
            Some(failed) => work.take_failed_gate(failed, None),
        }
    }

    loop {
        match work.exhausted(context).await? {
            None => work.hear(context).await?,
            Some(reason) => {
                if !work.is_told_more(context).await? {
                    return Ok(work.blocked(reason));
                }
            }
        }
        work.begin_session(context).await?;
        let session = context.call::<RunSession>(work.session()).await?;
        let sealed = context.call::<Seal>(work.seal(&session)).await?;
        work.take_session(&session, &sealed);
        if session.ending != SessionEnding::ClaimsDone {
            continue;
        }

        work.step(context, "gates").await?;
        let gates = context.call::<RunChecks>(work.gates(&sealed.commit)).await?;
        if let Some(failed) = gates.failed() {
            work.take_failed_gate(failed, None);
            continue;
        }

        if !approval::given(context, work, &sealed.commit).await? {
            continue;
        }
        work.step(context, "waiting to merge").await?;
        let turn = turn::take(context, work, &sealed).await?;
        work.step(context, "merging").await?;
        match integrate(context, work, &turn, &sealed.commit).await? {
            Some((commit, waits_on_next)) => {
                return close(context, work, commit, waits_on_next).await;
            }
            None => turn::give_back(context, work).await?,
        }
    }
}

/// Merges, checks the merged result and lands it; `None` if it goes back to the agent.
async fn integrate(
    context: &mut dyn Context,
    work: &mut Work,
    turn: &Turn,
    commit: &str,
) -> Result<Option<(String, Option<String>)>, Stop> {
    let at = context.now().await?;
    loop {
        let merge = work.merge(commit, at);
        let (candidate, tip, worktree) = match context.call::<MergeCandidate>(merge).await? {
            Merged::Candidate { commit, tip, worktree, .. } => (commit, tip, worktree),
            Merged::Conflict { tip, files, output } => {
                work.take_conflict(&tip, &files, &output);
                return Ok(None);
            }
        };
        if let Some(failed) = failed_when_merged(context, work, turn, &worktree, &candidate).await? {
            work.take_failed_gate(&failed, Some(&tip));
            return Ok(None);
        }
        // The target moved while the gates ran (a person committed to it): what was checked is not what would land.
        if let Some(landed) = turn::land(context, work, &tip, &candidate).await? {
            return Ok(Some((candidate, landed.waits_on_next)));
        }
    }
}

/// The change since which a merged result is set up before its gates are run.
const MERGED_SETUP: &str = "set-up of the merged result";

/// What failed on the merged result: its set-up, without which gates would say little of it, or one of its gates.
async fn failed_when_merged(
    context: &mut dyn Context,
    work: &Work,
    turn: &Turn,
    worktree: &str,
    candidate: &str,
) -> Result<Option<Evidence>, Stop> {
    if context.version(MERGED_SETUP, 1).await? > 0 {
        let setup = context.call::<RunSetup>(work.merged_setup(worktree, candidate)).await?;
        if let Some(failed) = setup.failed() {
            return Ok(Some(failed.clone()));
        }
    }
    let checks = context.call::<RunChecks>(work.merged_gates(worktree, candidate, turn)).await?;
    Ok(checks.failed().cloned())
}

async fn close(
    context: &mut dyn Context,
    work: &mut Work,
    commit: String,
    waits_on_next: Option<String>,
) -> Result<FeatureOutcome, Stop> {
    let close = CloseInput { project: work.project(), feature: work.id(), worktree: work.worktree.clone() };
    context.call::<CloseWorktree>(close).await?;
    Ok(work.passed(commit, waits_on_next))
}

/// Told beside a session after those before it changed no file: mostly the agent has no leave to write.
const NOTHING_CHANGED: &str = "no file changed so far: may the agent write?";

impl Work {
    /// Publishes what is happening now.
    async fn step(&mut self, context: &mut dyn Context, step: &str) -> Result<(), Stop> {
        self.progress.step = step.to_owned();
        context.set(FeatureProgress::KEY, &self.progress).await
    }

    async fn begin_session(&mut self, context: &mut dyn Context) -> Result<(), Stop> {
        self.progress.sessions += 1;
        let reason = match self.reason {
            SessionReason::Start => None,
            reason => Some(reason.as_str().replace('_', " ")),
        };
        let tampering = (!self.feedback.tampered.is_empty()).then(|| "tampering put back".to_owned());
        let idle = (self.progress.sessions > 1 && self.has_changed_nothing()).then(|| NOTHING_CHANGED.to_owned());
        let why: Vec<String> = reason.into_iter().chain(tampering).chain(idle).collect();
        let why = if why.is_empty() { String::new() } else { format!(" ({})", why.join(", ")) };
        self.step(context, &format!("session {}{why}", self.progress.sessions)).await
    }
}
