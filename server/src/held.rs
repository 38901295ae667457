//! Telling a project which of its runs do not go on by themselves: paused, parked or stuck. It lets others merge past them.
//!
//! This is a hint. A project that gets it late, twice or not at all merges in a worse order and nothing else.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use longhaul_engine::{Event, EventKind, MessageBody, Payload, RunId, RunReader, Status, StoreError};
use longhaul_workflows::project::{Held, signal};
use tokio::sync::broadcast::error::RecvError;

use crate::service::Service;

/// How often runs are looked at that cannot go on: no event says so.
const LOOK: Duration = Duration::from_secs(1);

/// Keeps a project informed until the engine stops.
pub(crate) async fn watch(service: Arc<Service>, project: RunId) {
    if let Err(error) = keep_informed(&service, &project).await {
        tracing::warn!("cannot see which runs of {project} are held: {error}");
    }
}

async fn keep_informed(service: &Service, project: &RunId) -> Result<(), StoreError> {
    let Some(engine) = &service.engine else { return Ok(()) };
    let mut recorded = engine.recorded();
    let published = service.store.published(project).await?;
    let known = published.get(Held::KEY).and_then(|held| held.read::<Held>().ok()).unwrap_or_default();
    // An unread report of an earlier process is acted on later, so it must not be the last one.
    let is_held_report = |body: &MessageBody| matches!(body, MessageBody::Signal { name, .. } if name == signal::HELD);
    let is_reported = service.store.mailbox(project).await?.iter().any(|message| is_held_report(&message.body));
    let mut told = (!is_reported).then_some(known.runs);
    let mut held = all_held(&*service.store, project).await?;
    loop {
        let stuck = engine.stuck().into_keys().filter(|run| run != project && run.is_within(project.as_str()));
        let now: BTreeSet<RunId> = held.iter().cloned().chain(stuck).collect();
        if told.as_ref() != Some(&now) {
            engine.signal(project, signal::HELD, Payload::of(&Held { runs: now.clone() })).await?;
            told = Some(now);
        }
        let event = tokio::select! {
            event = recorded.recv() => event,
            () = tokio::time::sleep(LOOK) => continue,
        };
        match event {
            Ok(recorded) if recorded.run == *project || !recorded.run.is_within(project.as_str()) => {}
            Ok(recorded) if !recorded.events.iter().any(changes_that) => {}
            Ok(recorded) => {
                let summary = service.store.summary(&recorded.run).await?;
                if summary.is_some_and(|summary| is_held(&summary.status)) {
                    held.insert(recorded.run.clone());
                } else {
                    held.remove(&recorded.run);
                }
            }
            Err(RecvError::Lagged(_)) => held = all_held(&*service.store, project).await?,
            Err(RecvError::Closed) => return Ok(()),
        }
    }
}

/// Whether an event can change what is held.
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
