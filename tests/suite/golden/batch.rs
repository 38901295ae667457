//! What happens to a batch in the history that is recorded of one: submitted, done in part,
//! submitted with more, at rest.

use longhaul_engine::{Engine, EventKind, NewRun, Payload};
use longhaul_tests::script::{id, until};
use longhaul_workflows::backlog::FeatureId;
use longhaul_workflows::batch::{
    BatchInput, BatchWorkflow, Entry, EntryState, Overrides, Plan, StateReport, Submit,
};
use longhaul_workflows::contracts::ProjectRef;

/// The run of the batch.
pub(super) const RUN: &str = "batch/nightly";

fn name(name: &str) -> FeatureId {
    FeatureId::new(name).unwrap()
}

fn entry(of: &str, after: &[&str], priority: i64) -> Entry {
    Entry {
        name: name(of),
        project: ProjectRef { id: of.into(), root: format!("/home/ann/{of}") },
        after: after.iter().map(|after| name(after)).collect(),
        priority,
        labels: [("team".to_owned(), "web".to_owned())].into(),
        overrides: Overrides::default(),
    }
}

/// One project at once, in this order: blog, which is more urgent than shop; shop; docs, which come
/// after it.
fn plan() -> Plan {
    let projects = vec![entry("docs", &["shop"], 9), entry("shop", &[], 0), entry("blog", &[], 1)];
    Plan { limits: [("team=web".to_owned(), 2)].into(), at_once: Some(1), projects }
}

pub(super) async fn happen(engine: &Engine) {
    let input = Payload::of(&BatchInput::default());
    engine
        .start(NewRun {
            run: id(RUN),
            workflow: BatchWorkflow::NAME.into(),
            input,
            labels: [].into(),
        })
        .await
        .unwrap();
    submit(engine, "1", plan()).await;
    came_of(engine, "1", "blog", EntryState::Blocked).await;
    came_of(engine, "1", "shop", EntryState::Passed).await;
    came_of(engine, "1", "docs", EntryState::Passed).await;
    let mut more = plan();
    more.projects.push(entry("wiki", &["docs"], 0));
    submit(engine, "2", more).await;
    for of in ["blog", "shop", "docs"] {
        came_of(engine, "2", of, EntryState::Passed).await;
    }
    came_of(engine, "2", "wiki", EntryState::Suspended).await;
    until("the batch waits", async || {
        let history = engine.store().read(&id(RUN), 0).await.unwrap();
        matches!(history.last().unwrap().kind, EventKind::MessageAwaited { .. })
            && is(engine, "wiki", &EntryState::Suspended).await
    })
    .await;
}

async fn submit(engine: &Engine, submission: &str, plan: Plan) {
    engine
        .signal(&id(RUN), Submit::SIGNAL, Payload::of(&Submit { id: submission.into(), plan }))
        .await
        .unwrap();
}

/// Sends the report of the log's owner about a project that has begun.
async fn came_of(engine: &Engine, submission: &str, of: &str, state: EntryState) {
    until(of, async || is(engine, of, &EntryState::Working).await).await;
    let report = StateReport { submission: submission.into(), name: name(of), state };
    engine.signal(&id(RUN), StateReport::SIGNAL, Payload::of(&report)).await.unwrap();
}

async fn is(engine: &Engine, of: &str, state: &EntryState) -> bool {
    let published = engine.store().published(&id(RUN)).await.unwrap();
    let there = published
        .get(&EntryState::key(&name(of)))
        .and_then(|state| state.read::<EntryState>().ok());
    there.as_ref() == Some(state)
}
