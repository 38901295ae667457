//! Waits until runs have followed an order.

use std::time::{Duration, Instant};

use anyhow::Result;
use longhaul_engine::RunId;
use longhaul_server::views::{Describe, list};
use longhaul_server::{Client, Order};
use longhaul_workflows::feature::FeatureWorkflow;
use longhaul_workflows::project::ProjectWorkflow;
use longhaul_workflows::projection::State;

use crate::arguments::Wait;
use crate::command::call;
use crate::command::named::exact;

/// The interval between two looks at a run.
const AGAIN: Duration = Duration::from_millis(200);

/// The runs that have not followed the order when the time is up.
pub(super) async fn laggards(
    client: &Client,
    mut runs: Vec<RunId>,
    order: &Order,
    wait: &Wait,
) -> Result<Vec<RunId>> {
    let begun = Instant::now();
    loop {
        let mut open = Vec::new();
        for run in runs {
            if !has_followed(client, &run, order).await? {
                open.push(run);
            }
        }
        let is_late = wait.timeout.is_some_and(|timeout| begun.elapsed() >= timeout);
        if open.is_empty() || is_late {
            return Ok(open);
        }
        runs = open;
        tokio::time::sleep(AGAIN).await;
    }
}

/// Whether a run has taken the order and reached the state that it asks for.
async fn has_followed(client: &Client, run: &RunId, order: &Order) -> Result<bool> {
    let document = call(client, Describe(exact(run))).await?;
    let line = &document.run;
    if line.header.status.is_over() {
        return Ok(true);
    }
    if !document.mailbox.is_empty() {
        return Ok(false);
    }
    Ok(match order {
        Order::Pause => line.header.status == State::Paused,
        Order::Resume => line.header.status != State::Paused,
        // The run of a cancelled project stays open; the runs of its features end.
        Order::Cancel if line.workflow == ProjectWorkflow::NAME => {
            let kind = Some(FeatureWorkflow::NAME.into());
            let status = State::ALL.into_iter().filter(|state| !state.is_over()).collect();
            let project = Some(run.clone());
            let query = list::Query { project, kind, status, limit: 1, ..list::Query::default() };
            call(client, query).await?.fitting == 0
        }
        Order::Cancel | Order::Terminate => false,
        _ => true,
    })
}
