//! A session, and the engine that runs it.

use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use async_trait::async_trait;
use longhaul_activities::git::GitHandlers;
use longhaul_activities::model::{Limiter, ModelHandler};
use longhaul_engine::{
    Attempt, Engine, Failure, Handler, Handlers, NewRun, Options, Parts, Payload, RunId,
    SystemClock, Workflows,
};
use longhaul_storage::SledStore;
use longhaul_workflows::backlog::{Feature, FeatureId};
use longhaul_workflows::contracts::{
    BeginInput, BeginSession, CallModel, EndInput, EndSession, Feedback, ProjectRef, PromptTexts,
    SealInput, SealStep, SessionBegin, SessionEnd, SessionInput, SessionReason,
};
use longhaul_workflows::resources::Resources;
use longhaul_workflows::session::{SessionStart, SessionWorkflow, tools};
use longhaul_workflows::settings::{AgentSettings, ApiSettings, ContextSettings, Driver};
use tokio::sync::Semaphore;

use super::super::workload;

/// A window that no session fills.
const WINDOW: u64 = 100_000_000;
const SYSTEM: &str = "You work on one feature of a project, in a work tree of your own. ";

/// An engine for sessions, and a permit for each of them that has ended.
pub(super) async fn engine(
    store: &Arc<SledStore>,
    directory: &Path,
    options: Options,
) -> Result<(Engine, Arc<Semaphore>)> {
    let ended = Arc::new(Semaphore::new(0));
    let model = ModelHandler::new(directory, GitHandlers::new(directory), Limiter::new(directory));
    let parts = Parts {
        store: Arc::clone(store) as _,
        workflows: Workflows::new().with(SessionWorkflow::NAME, SessionWorkflow),
        handlers: Handlers::new()
            .with::<BeginSession>(Begin)
            .with::<CallModel>(model)
            .with::<EndSession>(End(Arc::clone(&ended))),
        clock: Arc::new(SystemClock),
        options,
    };
    Ok((Engine::open(parts).await?, ended))
}

/// Begins a session without a work tree.
struct Begin;

#[async_trait]
impl Handler<BeginSession> for Begin {
    async fn perform(
        &self,
        input: BeginInput,
        _attempt: &Attempt,
    ) -> Result<SessionBegin, Failure> {
        Ok(SessionBegin {
            landed: None,
            sandbox: "none".into(),
            texts: PromptTexts {
                system: SYSTEM.repeat(30),
                prompt: format!("Work on `{}`.", input.session.feature.id),
                ..PromptTexts::default()
            },
            tools: tools::specs(),
            window: None,
        })
    }
}

/// Ends a session, and counts it.
struct End(Arc<Semaphore>);

#[async_trait]
impl Handler<EndSession> for End {
    async fn perform(&self, _input: EndInput, _attempt: &Attempt) -> Result<SessionEnd, Failure> {
        self.0.add_permits(1);
        Ok(SessionEnd { notes: String::new() })
    }
}

/// The id of a session.
pub(super) fn id(number: usize) -> Result<RunId> {
    Ok(RunId::new(format!("bench/feature-{number:04}/1/1"))?)
}

/// A session to start.
pub(super) fn session(number: usize, url: &str, directory: &Path) -> Result<NewRun> {
    let id = id(number)?;
    let feature = FeatureId::new(format!("feature-{number:04}"))?;
    let root = directory.display().to_string();
    let project = ProjectRef { id: "bench".into(), root };
    let seal = SealInput {
        project: project.clone(),
        target: "main".into(),
        feature: feature.clone(),
        protected: Vec::new(),
        list_file: "feature_list.json".into(),
        step: SealStep::Found,
    };
    let session = SessionInput {
        project,
        target: "main".into(),
        feature: Feature::new(feature, "One of many"),
        number: 1,
        reason: SessionReason::Start,
        gates: Vec::new(),
        feedback: Feedback::default(),
        agent: AgentSettings {
            driver: Driver::Api,
            model: Some("scripted".into()),
            api: ApiSettings { url: Some(url.into()), ..ApiSettings::default() },
            context: ContextSettings { window: Some(WINDOW), ..ContextSettings::default() },
            ..AgentSettings::default()
        },
        available: None,
        held_out: None,
        redo: false,
    };
    let available =
        Resources { turns: u32::MAX, tokens: u64::MAX, cost_micros: u64::MAX, time_ms: u64::MAX };
    let start =
        SessionStart { id: id.clone(), session, seal, handoff: None, task: None, available };
    workload::new_run(id.to_string(), SessionWorkflow::NAME, Payload::of(&start))
}
