//! Checks of finished features that fail on a merged result: the merge broke them, or the target
//! fails them itself, because a person changed it.

use longhaul_engine::{Context, ContextExt, Stop};

use crate::contracts::{Evidence, RunSetup, StepTree};

use super::messages::{MergeLease, PassRefuted, RegressionCheck};
use super::{Work, notice};

/// The check of a finished feature that failed, if it fails on the tip alone, too. The project is
/// told: no session on this work could repair it.
pub(super) async fn broken(
    context: &mut dyn Context,
    work: &mut Work,
    lease: &MergeLease,
    tip: &str,
    failed: &Evidence,
) -> Result<Option<RegressionCheck>, Stop> {
    let is_failed = |check: &&RegressionCheck| {
        let check = check.named();
        check.name == failed.name && check.run == failed.command
    };
    let Some(found) = lease.regression.iter().find(is_failed).cloned() else { return Ok(None) };
    let tree = StepTree::Integration(lease.tree);
    let setup = context.call::<RunSetup>(work.merged_setup(tree, tip)).await?;
    if setup.failed().is_some() {
        return Ok(None);
    }
    let on_the_tip = work.checks(tree, tip, vec![found.named()]);
    let report = notice::checks(context, work, on_the_tip).await?;
    if !report.failed().is_some_and(Evidence::is_verdict) {
        return Ok(None);
    }
    let refuted = PassRefuted {
        feature: found.feature.clone(),
        check: found.check.name.clone(),
        commit: tip.to_owned(),
    };
    context.signal(work.project_run()?, PassRefuted::SIGNAL, &refuted).await?;
    Ok(Some(found))
}
