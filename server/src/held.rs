//! Tells a project which of its runs make no progress (paused, parked or stuck), so that others
//! merge past them.
//!
//! A report may come late or twice. The last one must be right: the project gives no merge lease to
//! a run that it considers held.

use std::collections::BTreeSet;
use std::sync::Arc;

use longhaul_engine::{
    Engine, Event, EventKind, MessageBody, Payload, RunId, RunReader, Status, StoreError,
};
use longhaul_workflows::project::{BacklogView, HeldRuns, signal};
use tokio::sync::broadcast::error::RecvError;

use crate::service::Service;

/// Keeps a project informed until the engine stops.
pub(crate) async fn watch(service: Arc<Service>, project: RunId) {
    let Some(engine) = &service.engine else { return };
    if let Err(error) = keep_informed(engine, &*service.store, &project).await {
        tracing::warn!("cannot see which runs of {project} are held: {error}");
    }
}

async fn keep_informed(
    engine: &Engine,
    store: &dyn RunReader,
    project: &RunId,
) -> Result<(), StoreError> {
    let mut changes = engine.changes();
    let mut reported = last_report(store, project).await?;
    let mut held = all_held(store, project).await?;
    loop {
        let stuck = engine
            .stuck()
            .into_keys()
            .filter(|run| run != project && run.is_within(project.as_str()));
        let now: BTreeSet<RunId> = held.iter().cloned().chain(stuck).collect();
        if reported.as_ref() != Some(&now) {
            engine
                .signal(project, signal::HELD, Payload::of(&HeldRuns { runs: now.clone() }))
                .await?;
            reported = Some(now);
        }
        match changes.recv().await {
            // A report of an earlier process may be applied after this process has looked for it.
            Ok(change) if change.run == *project => {
                reported = change.events.iter().fold(reported, published_in);
            }
            Ok(change) if !change.run.is_within(project.as_str()) => {}
            Ok(change) if !change.events.iter().any(changes_that) => {}
            Ok(change) => {
                let summary = store.summary(&change.run).await?;
                if summary.is_some_and(|summary| is_held(&summary.status)) {
                    held.insert(change.run.clone());
                } else {
                    held.remove(&change.run);
                }
            }
            Err(RecvError::Lagged(_)) => {
                held = all_held(store, project).await?;
                reported = None;
            }
            Err(RecvError::Closed) => return Ok(()),
        }
    }
}

/// The last report to the project, if the project has applied it.
async fn last_report(
    store: &dyn RunReader,
    project: &RunId,
) -> Result<Option<BTreeSet<RunId>>, StoreError> {
    let is_report = |body: &MessageBody| match body {
        MessageBody::Signal { name, .. } => name == signal::HELD,
        _ => false,
    };
    if store.mailbox(project).await?.iter().any(|message| is_report(&message.body)) {
        return Ok(None);
    }
    let published = store.published_except(project, BacklogView::KEY).await?;
    let held = published.get(HeldRuns::KEY).and_then(|held| held.read::<HeldRuns>().ok());
    Ok(Some(held.unwrap_or_default().runs))
}

/// The last report according to the response of the project, else as known before.
fn published_in(reported: Option<BTreeSet<RunId>>, event: &Event) -> Option<BTreeSet<RunId>> {
    match &event.kind {
        EventKind::StatusPublished { key, value, .. } if key == HeldRuns::KEY => {
            value.read().ok().map(|held: HeldRuns| held.runs)
        }
        _ => reported,
    }
}

/// Whether an event can change the set of held runs.
fn changes_that(event: &Event) -> bool {
    let kind = &event.kind;
    matches!(
        kind,
        EventKind::RunPaused(_)
            | EventKind::RunResumed(_)
            | EventKind::RunParked { .. }
            | EventKind::RunReconciled { .. }
            | EventKind::CancelDelivered { .. }
    ) || kind.outcome().is_some()
}

fn is_held(status: &Status) -> bool {
    matches!(status, Status::Paused(_) | Status::Parked(_))
}

async fn all_held(store: &dyn RunReader, project: &RunId) -> Result<BTreeSet<RunId>, StoreError> {
    let runs = store.runs(&format!("{project}/")).await?.into_iter();
    Ok(runs.filter(|(_, summary)| is_held(&summary.status)).map(|(run, _)| run).collect())
}
