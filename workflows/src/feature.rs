//! The feature workflow, from the first work tree to the target branch. This file is the outline;
//! one session, its seal and its gates are in [`session_cycle`].
//!
//! Every `call` is an activity whose result is in the log before the next line runs. After a crash
//! `feature` runs again from the top, receives the recorded results, and continues at the end
//! of the log.

mod approval;
mod block;
mod claim;
mod edited;
mod hosted;
mod merge_lease;
mod messages;
mod note;
mod notice;
mod outcome;
mod regression;
mod run_id;
mod session_cycle;
mod session_permit;
mod stage;
mod steps;
mod tree;
mod work;

use async_trait::async_trait;
use longhaul_engine::{Context, ContextExt, Ending, Payload, Stop, Workflow};

use crate::contracts::{
    Evidence, MergeCandidate, Merged, OpenInput, OpenWorktree, RunSetup, StepTree,
};
use crate::finding::Finding;

pub use crate::note::Note;
pub use approval::{Approval, Awaited};
pub use block::{Attempts, BlockReason, BrokenBase, FeatureBlock, GivenUp};
pub use edited::Edited;
pub use messages::{
    MergeLease, MergeRequest, PassRefuted, RegressionCheck, SessionEnded, SessionPermit,
    SessionRequest, SessionResult,
};
pub use outcome::{FeatureInput, FeatureOutcome, FeatureProgress};
pub use run_id::{FeatureRunId, feature_run};
pub use stage::Stage;
pub use steps::{
    COPIED, Checkpoint, CheckpointStep, FORKED_FROM, Prefix, before_last_receive, checkpoints,
    prefix,
};

use outcome::Landing;
use session_cycle::CycleEnd;
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
        let input: FeatureInput = input.read()?;
        let mut work = Work::new(input);
        let outcome = match feature(context, &mut work).await {
            // A step of Longhaul failed, not the work: the next `sync` tries again.
            Err(Stop::Failed(failure)) => {
                work.blocked(BlockReason::Step { message: failure.message })
            }
            other => other?,
        };
        Ok(Ending::Complete(Payload::of(&outcome)))
    }
}

async fn feature(context: &mut dyn Context, work: &mut Work) -> Result<FeatureOutcome, Stop> {
    if work.input.anew {
        claim::close(context, work).await?;
    }
    if work.input.claimed
        && let Some(landing) = claim::judge(context, work).await?
    {
        return Ok(work.passed_as_claimed(landing));
    }

    work.enter(context, Stage::WorkTree).await?;
    let open = OpenInput {
        project: work.project(),
        target: work.target(),
        feature: work.id(),
        called_done: work.input.called_done,
        may_have_landed: work.input.may_have_landed,
    };
    let worktree = context.call::<OpenWorktree>(open).await?;
    work.take_worktree(&worktree);
    if let Some(landed) = worktree.landed
        && let Some(confirmed) = claim::judge(context, work).await?
    {
        work.files = landed.files;
        return Ok(work.passed(Landing { commit: landed.commit, ..confirmed }));
    }
    if worktree.has_work {
        tree::refresh(context, work).await?;
    }
    tree::baseline(context, work).await?;
    if !worktree.has_work
        && let Some(unready) = notice::unready(context, work).await?
    {
        return Ok(work.blocked(unready));
    }

    // Unlanded work of an earlier run is checked before an agent is paid to do it again.
    let mut passed = None;
    if (work.input.claimed || work.input.called_done) && worktree.has_work {
        passed = claim::gates_on_found(context, work).await?;
    }
    loop {
        let commit = match passed.take() {
            Some(commit) => commit,
            None => match session_cycle::run(context, work).await? {
                CycleEnd::Passed(commit) => commit,
                CycleEnd::Again => continue,
                CycleEnd::GivenUp(reason) => return Ok(work.blocked(reason)),
                CycleEnd::Landed(landing) => return Ok(work.passed(landing)),
            },
        };
        if !approval::is_granted(context, work, &commit).await? {
            continue;
        }
        work.enter(context, Stage::TurnToMerge).await?;
        let files = work.files.clone();
        let lease = merge_lease::acquire(context, work, &files).await?;
        work.enter(context, Stage::Merging).await?;
        match integrate(context, work, &lease, &commit).await? {
            Some(landing) => {
                claim::close_landed(context, work).await?;
                return Ok(work.passed(landing));
            }
            None => merge_lease::release(context, work).await?,
        }
    }
}

/// A merged result.
struct Candidate {
    commit: String,
    /// The tip that it was merged with.
    tip: String,
    /// The sealed commit, if its content is the same apart from the mark in the list.
    same_as: Option<String>,
}

/// Merges, checks the merged result and lands it; `None` if it returns to the agent.
async fn integrate(
    context: &mut dyn Context,
    work: &mut Work,
    lease: &MergeLease,
    commit: &str,
) -> Result<Option<Landing>, Stop> {
    let at = context.now().await?;
    loop {
        let merge = work.merge(commit, at, lease);
        let candidate = match context.call::<MergeCandidate>(merge).await? {
            Merged::Candidate { commit: merged, tip, same_as_work, put_back, outside, .. } => {
                work.note_outside(&outside);
                if !put_back.is_empty() {
                    work.note_finding(Finding::MergedOver { files: put_back });
                }
                let same_as = same_as_work.then(|| commit.to_owned());
                Candidate { commit: merged, tip, same_as }
            }
            Merged::Conflict { tip, files, output } => {
                work.take_conflict(&tip, &files, &output);
                return Ok(None);
            }
        };
        if let Some(failed) = failed_when_merged(context, work, lease, &candidate).await? {
            work.count_failed_gate(&failed, Some(&candidate.tip));
            return Ok(None);
        }
        // The target moved, or the checks were edited, while the gates ran: merge and check again.
        let Candidate { commit: merged, tip, .. } = candidate;
        if let Some(landed) = merge_lease::land(context, work, &tip, &merged).await? {
            work.note_outside(&landed.outside);
            return Ok(Some(Landing { commit: merged, waits_on_next: landed.waits_on_next }));
        }
    }
}

/// Runs the set-up and the gates on the merged result; returns the first failure of the work.
async fn failed_when_merged(
    context: &mut dyn Context,
    work: &mut Work,
    lease: &MergeLease,
    candidate: &Candidate,
) -> Result<Option<Evidence>, Stop> {
    let integration = StepTree::Integration(lease.tree);
    let is_checked = candidate.same_as.is_some() && !work.input.settings.merge.repeat_gates;
    let tree = if is_checked { StepTree::Feature } else { integration };
    let mut regression = lease.regression.clone();
    loop {
        if !is_checked {
            let setup = work.merged_setup(integration, &candidate.commit);
            if let Some(failed) = context.call::<RunSetup>(setup).await?.failed() {
                return Ok(Some(failed.clone()));
            }
        }
        let mut checks = work.merged_gates(tree, &candidate.commit, &regression);
        if is_checked {
            // The gates of the work go on with those of other features.
            checks.same_as.clone_from(&candidate.same_as);
        }
        let checks = notice::checks(context, work, checks).await?;
        let Some(failed) = checks.failed().cloned() else { return Ok(None) };
        let Some(broken) =
            regression::broken(context, work, lease, &candidate.tip, &failed).await?
        else {
            return Ok(Some(failed));
        };
        regression.retain(|check| *check != broken);
    }
}

impl Work {
    /// Publishes the current stage.
    async fn enter(&mut self, context: &mut dyn Context, stage: Stage) -> Result<(), Stop> {
        self.progress.stage = Some(stage);
        context.set(FeatureProgress::KEY, &self.progress).await
    }

    async fn begin_session(&mut self, context: &mut dyn Context) -> Result<(), Stop> {
        self.progress.sessions += 1;
        self.repairs |= self.broken.is_some();
        let stage = Stage::Session {
            number: self.progress.sessions,
            reason: self.reason,
            after_tampering: !self.feedback.tampered.is_empty(),
            after_no_change: self.progress.sessions > 1 && self.has_changed_nothing(),
        };
        self.enter(context, stage).await
    }
}
