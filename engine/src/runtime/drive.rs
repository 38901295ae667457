//! Drives a run that is in memory, life after life, until it ends or can leave.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use tokio::sync::mpsc;

use crate::context::Stop;
use crate::id::RunId;
use crate::local::{Inbox, Life, Retirement};
use crate::store::{Birth, StoreError};

use super::Shared;

/// How a life ended.
enum End {
    RunEnded,
    NextSegment,
    Retired(Retirement),
    Stuck(Stop),
}

/// `birth`: of a run that was just born, and of which nobody else knows.
pub(super) async fn drive(shared: Arc<Shared>, run: RunId, inbox: Arc<Inbox>, mut birth: Option<Birth>) {
    loop {
        let life = live(&shared, &run, &inbox, birth.take());
        let end = AssertUnwindSafe(life).catch_unwind().await.unwrap_or_else(|_| {
            let message = format!("the workflow of run {run} panicked; this is a bug, its history is as it was");
            End::Stuck(StoreError::Unusable(message).into())
        });
        let leave_unseen = match end {
            End::NextSegment => continue,
            End::Retired(Retirement::Suspended(until)) => {
                if shared.release(&run, &inbox, false) {
                    if let Some(until) = until {
                        shared.timers.add(until, run);
                    }
                    return;
                }
                continue;
            }
            End::Stuck(stop) => {
                tracing::error!(%run, "{stop}");
                shared.stuck().insert(run.clone(), stop);
                true
            }
            End::RunEnded | End::Retired(Retirement::Terminated) => {
                shared.stuck().remove(&run);
                true
            }
            End::Retired(Retirement::Stopping) => true,
        };
        shared.release(&run, &inbox, leave_unseen);
        return;
    }
}

async fn live(shared: &Arc<Shared>, run: &RunId, inbox: &Arc<Inbox>, birth: Option<Birth>) -> End {
    let (retire, mut retired) = mpsc::unbounded_channel();
    let (here, mail) = (Arc::clone(shared), Arc::clone(inbox));
    let begun = match birth {
        Some(birth) => Life::first(here, birth, mail, retire),
        None => Life::begin(here, run.clone(), mail, retire).await,
    };
    let (mut life, input) = match begun {
        Ok(begun) => begun,
        Err(error) => return End::Stuck(error.into()),
    };
    if life.is_over() {
        return End::RunEnded;
    }
    // Before the workflow: a run whose code has diverged can be ended too.
    match life.terminate().await {
        Ok(false) => {}
        Ok(true) => return End::RunEnded,
        Err(stop) => return End::Stuck(stop),
    }
    let name = life.workflow().to_owned();
    let Some(workflow) = shared.workflows.find(&name) else {
        return End::Stuck(StoreError::Unusable(format!("no workflow `{name}` in this program")).into());
    };
    let work = async {
        let ending = workflow.run(&mut life, input).await;
        life.end(ending).await
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
