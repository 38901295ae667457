//! Drives a run that is in memory, activation after activation, until it ends or can leave.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use tokio::sync::mpsc;

use crate::context::Stop;
use crate::fault::EngineFault;
use crate::id::RunId;
use crate::store::Creation;

use super::activation::{Activation, Retirement};
use super::inbox::Inbox;
use super::shared::Shared;

/// How an activation ended.
enum End {
    RunEnded,
    NextSegment,
    Retired(Retirement),
    Stuck(Stop),
}

/// `creation` is set for a run that was just created.
pub(super) async fn drive(
    shared: Arc<Shared>,
    run: RunId,
    inbox: Arc<Inbox>,
    mut creation: Option<Creation>,
) {
    let mut is_last = false;
    loop {
        let activation = live(&shared, &run, &inbox, creation.take());
        let end = AssertUnwindSafe(activation)
            .catch_unwind()
            .await
            .unwrap_or_else(|_| End::Stuck(EngineFault::Panicked(run.clone()).into()));
        match end {
            End::NextSegment => is_last = false,
            End::Retired(Retirement::Suspended(until)) => {
                if shared.release(&run, &inbox, Inbox::has_unseen) {
                    if let Some(until) = until {
                        shared.timers.add(until, run);
                    }
                    return;
                }
            }
            End::Stuck(stop) => {
                tracing::error!(%run, "{stop}");
                shared.set_stuck(&run, stop);
                // A termination is applied before the workflow runs, so one more activation can end
                // a stuck run. A later request wakes the run.
                if shared.release(&run, &inbox, |inbox| !is_last && inbox.may_hold_terminate()) {
                    return;
                }
                is_last = true;
            }
            End::RunEnded | End::Retired(Retirement::Terminated) => {
                shared.clear_stuck(&run);
                shared.pools.leave(&run);
                shared.release(&run, &inbox, |_| false);
                return;
            }
            End::Retired(Retirement::Stopping) => {
                shared.release(&run, &inbox, |_| false);
                return;
            }
        }
    }
}

async fn live(
    shared: &Arc<Shared>,
    run: &RunId,
    inbox: &Arc<Inbox>,
    creation: Option<Creation>,
) -> End {
    let (retire, mut retired) = mpsc::unbounded_channel();
    let here = Arc::clone(shared);
    let mail = Arc::clone(inbox);
    let begun = match creation {
        Some(creation) => Activation::of_new_run(here, creation, mail, retire),
        None => Activation::begin(here, run.clone(), mail, retire).await,
    };
    let (mut activation, input) = match begun {
        Ok(begun) => begun,
        Err(error) => return End::Stuck(error.into()),
    };
    if activation.is_over() {
        return End::RunEnded;
    }
    // Before the workflow: a run whose code has diverged can be ended too.
    match activation.terminate().await {
        Ok(false) => {}
        Ok(true) => return End::RunEnded,
        Err(stop) => return End::Stuck(stop),
    }
    let name = activation.workflow().to_owned();
    let Some(workflow) = shared.workflows.find(&name) else {
        return End::Stuck(EngineFault::UnknownWorkflow(name).into());
    };
    let work = async {
        let ending = workflow.run(&mut activation, input).await;
        activation.end(ending).await
    };
    tokio::select! {
        biased;
        ended = work => match ended {
            Ok(true) => End::NextSegment,
            Ok(false) => End::RunEnded,
            Err(stop) => End::Stuck(stop),
        },
        Some(retirement) = retired.recv() => End::Retired(retirement),
    }
}
