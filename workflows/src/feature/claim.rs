//! Claims that a feature passes: imported, edited since the pass, or invalidated with a dependency.
//!
//! A claim is checked on the target only. Work on the feature's own branch proves nothing until it
//! has landed.

use longhaul_engine::{Context, ContextExt, Stop};

use crate::contracts::{
    CheckOutTip, CloseInput, CloseWorktree, RunSetup, Seal, SealInput, SealStep, StepTree, TipInput,
};

use crate::finding::Finding;

use super::merge_lease;
use super::messages::MergeLease;
use super::outcome::Landing;
use super::{Stage, Work, notice, tree};

/// Runs the gates on the tip of the target; `None`: the claim is refuted.
///
/// It uses the integration work tree, so it needs the merge lease.
pub(super) async fn judge(
    context: &mut dyn Context,
    work: &mut Work,
) -> Result<Option<Landing>, Stop> {
    work.enter(context, Stage::TurnToCheck).await?;
    let lease = merge_lease::acquire(context, work, &[]).await?;
    work.enter(context, Stage::GatesOnTarget).await?;
    let merged = StepTree::Integration(lease.tree);
    loop {
        let tip = context.call::<CheckOutTip>(work.tip(&lease)).await?;
        let setup = context.call::<RunSetup>(work.merged_setup(merged, &tip.commit)).await?;
        let mut failed = setup.failed().cloned();
        if failed.is_none() {
            let checks = work.gates_of_claim(&tip.commit, &lease);
            failed = notice::checks(context, work, checks).await?.failed().cloned();
        }
        if let Some(failed) = failed {
            // It is not a failure of its work.
            work.record_failed_gate(&failed, None);
            merge_lease::release(context, work).await?;
            return Ok(None);
        }
        // The tip may be an unlanded merge, and the target may have moved: landing settles both.
        if let Some(landed) = merge_lease::land(context, work, &tip.commit, &tip.commit).await? {
            work.note_outside(&landed.outside);
            close_landed(context, work).await?;
            return Ok(Some(Landing { commit: tip.commit, waits_on_next: landed.waits_on_next }));
        }
    }
}

/// Seals unlanded work of an earlier run, and runs its gates; returns the commit on which they
/// passed. An agent may have died in it, so protected files are restored first.
pub(super) async fn gates_on_found(
    context: &mut dyn Context,
    work: &mut Work,
) -> Result<Option<String>, Stop> {
    let found = context.call::<Seal>(work.seal_found()).await?;
    if found.files.is_empty() {
        return Ok(None);
    }
    work.take_found(&found);
    tree::gates(context, work).await
}

/// Removes the work tree and the branch of the feature; its commits are kept. A request to cancel
/// is ignored here: the feature has landed.
pub(super) async fn close(context: &mut dyn Context, work: &Work) -> Result<(), Stop> {
    let close = CloseInput { project: work.project(), feature: work.id() };
    tree::to_its_end::<CloseWorktree>(context, close).await.map(drop)
}

/// Closes the work tree after the landing. The feature has passed, whatever is left over.
pub(super) async fn close_landed(context: &mut dyn Context, work: &mut Work) -> Result<(), Stop> {
    match close(context, work).await {
        Err(Stop::Failed(failure)) => {
            work.note_finding(Finding::TreeLeft { reason: failure.message });
            Ok(())
        }
        closed => closed,
    }
}

impl Work {
    fn tip(&self, lease: &MergeLease) -> TipInput {
        TipInput {
            project: self.project(),
            target: self.target(),
            list_file: self.input.list_file.clone(),
            tree: lease.tree,
        }
    }

    fn seal_found(&self) -> SealInput {
        self.seal_as(SealStep::Found)
    }
}
