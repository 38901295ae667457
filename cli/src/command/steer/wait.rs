//! Waits until runs have followed an order.

use anyhow::Result;
use longhaul_engine::RunId;
use longhaul_server::RunKind;
use longhaul_server::views::{Describe, DescribeDocument, ListRuns};
use longhaul_server::{Client, Error, Order, Perform};
use longhaul_workflows::projection::State;
use tokio::time::{Instant, timeout_at};

use crate::arguments::Wait;
use crate::command::call;
use crate::command::named::exact;

/// The runs that have not followed the order when the time is up.
pub(super) async fn laggards(
    client: &Client,
    runs: Vec<RunId>,
    order: &Order,
    wait: &Wait,
) -> Result<Vec<RunId>> {
    let deadline = wait.timeout.and_then(|timeout| Instant::now().checked_add(timeout));
    let mut open = Vec::new();
    for run in runs {
        if !follows(client, &run, order, deadline).await? {
            open.push(run);
        }
    }
    Ok(open)
}

async fn follows(
    client: &Client,
    run: &RunId,
    order: &Order,
    deadline: Option<Instant>,
) -> Result<bool> {
    let describe = Describe(exact(run));
    let has_followed = |document: &DescribeDocument| has_followed(document, order);
    let Some(document) = until(client, describe, deadline, has_followed).await? else {
        return Ok(false);
    };
    let line = &document.run;
    if *order != Order::Cancel || line.workflow != RunKind::Project || is_over(&document) {
        return Ok(true);
    }
    // The run of a cancelled project stays open; the runs of its features end.
    let features = ListRuns {
        project: Some(run.clone()),
        kind: Some(RunKind::Feature),
        is_open: true,
        limit: 1,
        ..ListRuns::default()
    };
    Ok(until(client, features, deadline, |list| list.fitting == 0).await?.is_some())
}

/// The first response that meets a condition; `None` if there is none in time.
async fn until<R: Perform + Clone>(
    client: &Client,
    request: R,
    deadline: Option<Instant>,
    is_met: impl Fn(&R::Response) -> bool,
) -> Result<Option<R::Response>> {
    let pushed = pushed(client, request.clone(), &is_met);
    let found = match deadline {
        Some(deadline) => timeout_at(deadline, pushed).await.unwrap_or(Ok(None)),
        None => pushed.await,
    };
    match found {
        Ok(Some(response)) => Ok(Some(response)),
        // The log decides: the run may have followed in time, or while the owner exited.
        Ok(None) | Err(Error::Gone(_)) => Ok(Some(call(client, request).await?).filter(is_met)),
        Err(error) => Err(error.into()),
    }
}

/// The first response that meets a condition; `None` if no process runs the log.
async fn pushed<R: Perform>(
    client: &Client,
    request: R,
    is_met: impl Fn(&R::Response) -> bool,
) -> Result<Option<R::Response>, Error> {
    let mut watch = client.watch(request).await?;
    while let Some(response) = watch.next().await? {
        if is_met(&response) {
            return Ok(Some(response));
        }
    }
    Ok(None)
}

fn is_over(document: &DescribeDocument) -> bool {
    document.run.header.status.is_over()
}

/// Whether a run has taken the order and reached the state that it asks for. A paused run reads no
/// other messages, such as the end of its session.
fn has_followed(document: &DescribeDocument, order: &Order) -> bool {
    let line = &document.run;
    is_over(document)
        || line.pending.is_empty()
            && match order {
                Order::Pause => line.header.status == State::Paused,
                Order::Resume => line.header.status != State::Paused,
                Order::Cancel => line.workflow == RunKind::Project,
                Order::Terminate => false,
                _ => true,
            }
}
