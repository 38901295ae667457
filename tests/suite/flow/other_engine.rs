//! An engine outside of the engine crate: workflows and handlers need a `Context`, the registries
//! and an attempt, and nothing of the embedded engine. It has no log; a distributed engine would
//! journal the commands instead.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use longhaul_engine::{
    Attempt, Call, Child, Client, Context, Ending, EngineError, Failure, Failures, Filter,
    Handlers, NewRun, Outcome, Payload, Received, RequestedBy, RunId, Slot, Started, Stop, Worker,
    Workflows,
};
use longhaul_tests::history::workflows;
use longhaul_tests::script::{id, sync};
use longhaul_workflows::contracts::ProjectRef;
use longhaul_workflows::feature::FeatureOutcome;
use longhaul_workflows::project::{FeatureView, ProjectInput, ProjectWorkflow, signal};
use tokio::sync::{mpsc, oneshot, watch};
use uuid::Uuid;

use super::world::{PROJECT, World, feature};

/// A call on its way to the worker.
struct Dispatch {
    run: RunId,
    slot: Slot,
    call: Call,
    reply: oneshot::Sender<Result<Payload, Failure>>,
}

/// The worker of one attempt, as a remote process would have it: it forwards nothing and never
/// cancels.
struct Remote;

#[async_trait]
impl Worker for Remote {
    fn heartbeat(&self) {}

    fn record_progress(&self, _details: Payload) {}

    fn emit(&self, _event: Payload) {}

    fn is_cancelled(&self) -> bool {
        false
    }

    async fn cancelled(&self) {
        std::future::pending::<()>().await;
    }
}

/// Performs calls with the registered handlers, retried by their policies.
async fn work(handlers: Handlers, mut calls: mpsc::UnboundedReceiver<Dispatch>) {
    while let Some(Dispatch { run, slot, call, reply }) = calls.recv().await {
        let handler = Arc::clone(handlers.find(call.name).expect("every activity has a handler"));
        tokio::spawn(async move {
            let mut failures = Failures::default();
            let result = loop {
                let number = failures.counted + 1;
                let attempt = Attempt {
                    run: run.clone(),
                    slot,
                    number,
                    last_progress: None,
                    worker: Arc::new(Remote),
                };
                match handler.perform(&call.input, &attempt).await {
                    Err(failure)
                        if call.policy.retry_at(&failure, failures, Utc::now()).is_some() =>
                    {
                        failures.counted += 1;
                    }
                    result => break result,
                }
            };
            let _ = reply.send(result);
        });
    }
}

#[derive(Default)]
struct Run {
    mailbox: Vec<Received>,
    parent: Option<RunId>,
    outcome: Option<Outcome>,
    published: BTreeMap<String, Payload>,
}

/// The engine. Clones are the same.
#[derive(Clone)]
struct Outside {
    workflows: Workflows,
    calls: mpsc::UnboundedSender<Dispatch>,
    runs: Arc<Mutex<HashMap<RunId, Run>>>,
    changed: Arc<watch::Sender<()>>,
}

impl Outside {
    fn new(workflows: Workflows, handlers: Handlers) -> Self {
        let (calls, received) = mpsc::unbounded_channel();
        tokio::spawn(work(handlers, received));
        Self { workflows, calls, runs: Arc::default(), changed: Arc::default() }
    }

    fn runs(&self) -> MutexGuard<'_, HashMap<RunId, Run>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&self, run: RunId, workflow: &str, input: Payload, parent: Option<RunId>) -> Started {
        if let Some(there) = self.runs().get(&run) {
            return if there.outcome.is_some() { Started::Over } else { Started::Joined };
        }
        self.runs().insert(run.clone(), Run { parent, ..Run::default() });
        let workflow = self.workflows.find(workflow).expect("every workflow is registered");
        let engine = self.clone();
        tokio::spawn(async move {
            let mut context =
                ForeignContext { engine: engine.clone(), run: run.clone(), commands: 0 };
            let mut input = input;
            let outcome = loop {
                match workflow.run(&mut context, input).await {
                    Ok(Ending::ContinueAsNew(next)) => input = next,
                    Ok(Ending::Complete(output)) => break Outcome::Completed(output),
                    Err(Stop::Failed(failure)) => break Outcome::Failed(failure),
                    Err(_) => break Outcome::Cancelled,
                }
            };
            engine.end(&run, outcome);
        });
        Started::New
    }

    fn end(&self, run: &RunId, outcome: Outcome) {
        let parent = self.runs().get_mut(run).and_then(|ended| {
            ended.outcome = Some(outcome.clone());
            ended.parent.clone()
        });
        if let Some(parent) = parent {
            self.put(&parent, Received::ChildEnded { run: run.clone(), outcome });
        }
        self.changed.send_replace(());
    }

    fn put(&self, to: &RunId, received: Received) -> bool {
        let mut runs = self.runs();
        let Some(run) = runs.get_mut(to).filter(|run| run.outcome.is_none()) else { return false };
        run.mailbox.push(received);
        drop(runs);
        self.changed.send_replace(());
        true
    }
}

#[async_trait]
impl Client for Outside {
    async fn start(&self, new: NewRun) -> Result<Started, EngineError> {
        Ok(self.begin(new.run, &new.workflow, new.input, None))
    }

    async fn signal(&self, run: &RunId, name: &str, payload: Payload) -> Result<bool, EngineError> {
        Ok(self.put(run, Received::Signal { name: name.into(), payload, from: None }))
    }

    async fn cancel(&self, _run: &RunId, _request: RequestedBy) -> Result<bool, EngineError> {
        Err(EngineError::new("this engine cancels nothing"))
    }

    async fn outcome(&self, run: &RunId) -> Result<Outcome, EngineError> {
        let mut changed = self.changed.subscribe();
        loop {
            let outcome = self.runs().get(run).and_then(|run| run.outcome.clone());
            match outcome {
                Some(outcome) => return Ok(outcome),
                None => changed.changed().await.map_err(EngineError::new)?,
            }
        }
    }

    async fn published(&self, run: &RunId) -> Result<BTreeMap<String, Payload>, EngineError> {
        Ok(self.runs().get(run).map(|run| run.published.clone()).unwrap_or_default())
    }
}

/// The context of one run.
struct ForeignContext {
    engine: Outside,
    run: RunId,
    commands: u32,
}

impl ForeignContext {
    fn take(&self, filter: &Filter) -> Option<Received> {
        let mut runs = self.engine.runs();
        let mailbox = &mut runs.get_mut(&self.run)?.mailbox;
        let index = mailbox.iter().position(|received| filter.takes(received))?;
        Some(mailbox.remove(index))
    }
}

#[async_trait]
impl Context for ForeignContext {
    fn run(&self) -> &RunId {
        &self.run
    }

    fn commands(&self) -> u32 {
        self.commands
    }

    async fn call_all(&mut self, calls: Vec<Call>) -> Result<Vec<Result<Payload, Failure>>, Stop> {
        self.commands += 1;
        let count = u16::try_from(calls.len()).map_err(EngineError::new)?;
        let mut replies = Vec::new();
        for (index, call) in (0..count).zip(calls) {
            let (reply, answer) = oneshot::channel();
            let slot = Slot { command: self.commands, call: index, calls: count };
            let dispatch = Dispatch { run: self.run.clone(), slot, call, reply };
            self.engine.calls.send(dispatch).map_err(|_| EngineError::new("the worker is gone"))?;
            replies.push(answer);
        }
        let mut results = Vec::new();
        for reply in replies {
            results.push(reply.await.map_err(EngineError::new)?);
        }
        Ok(results)
    }

    async fn start(&mut self, child: Child) -> Result<(), Stop> {
        self.engine.begin(child.run, child.workflow, child.input, Some(self.run.clone()));
        Ok(())
    }

    async fn receive(
        &mut self,
        filter: &Filter,
        timeout: Option<Duration>,
    ) -> Result<Option<Received>, Stop> {
        let mut changed = self.engine.changed.subscribe();
        let wait = async {
            loop {
                if let Some(received) = self.take(filter) {
                    return Ok(Some(received));
                }
                changed.changed().await.map_err(EngineError::new)?;
            }
        };
        match timeout {
            Some(timeout) => tokio::time::timeout(timeout, wait).await.unwrap_or(Ok(None)),
            None => wait.await,
        }
    }

    async fn try_receive(&mut self, filter: &Filter) -> Result<Option<Received>, Stop> {
        Ok(self.take(filter))
    }

    async fn send(&mut self, to: RunId, name: &str, payload: Payload) -> Result<(), Stop> {
        let from = Some(self.run.clone());
        self.engine.put(&to, Received::Signal { name: name.into(), payload, from });
        Ok(())
    }

    async fn cancel(&mut self, _run: RunId, _request: RequestedBy) -> Result<(), Stop> {
        Err(EngineError::new("this engine cancels nothing").into())
    }

    async fn sleep(&mut self, duration: Duration) -> Result<(), Stop> {
        tokio::time::sleep(duration).await;
        Ok(())
    }

    async fn now(&mut self) -> Result<DateTime<Utc>, Stop> {
        Ok(Utc::now())
    }

    async fn uuid(&mut self) -> Result<Uuid, Stop> {
        Ok(Uuid::now_v7())
    }

    async fn version(&mut self, _change: &str, latest: u32) -> Result<u32, Stop> {
        Ok(latest)
    }

    async fn publish(&mut self, key: &str, value: Payload) -> Result<(), Stop> {
        if let Some(run) = self.engine.runs().get_mut(&self.run) {
            run.published.insert(key.into(), value);
        }
        Ok(())
    }
}

#[tokio::test]
async fn a_feature_passes_on_an_engine_outside_of_the_engine_crate() {
    let one = feature("a", "has a");
    let key = FeatureView::key(&one.id);
    let world = World::new(vec![one]);
    let engine = Outside::new(workflows(), world.handlers());
    let client: &dyn Client = &engine;
    let project = ProjectRef { id: PROJECT.into(), root: "/p".into() };
    let input = Payload::of(&ProjectInput { project, memory: None });
    let (workflow, labels) = (ProjectWorkflow::NAME.into(), BTreeMap::new());
    client.start(NewRun { run: id(PROJECT), workflow, input, labels }).await.unwrap();
    client.signal(&id(PROJECT), signal::SYNC, sync("first")).await.unwrap();

    let Outcome::Completed(output) = client.outcome(&id("p/a/1")).await.unwrap() else {
        panic!("it completes")
    };
    assert!(matches!(output.read::<FeatureOutcome>().unwrap(), FeatureOutcome::Passed { .. }));
    assert_eq!(world.state().landed, ["p/a/1"]);
    let passes = async || {
        let published = client.published(&id(PROJECT)).await.unwrap();
        published
            .get(&key)
            .and_then(|view| view.read::<FeatureView>().ok())
            .is_some_and(|view| view.passes)
    };
    longhaul_tests::script::until("the project shows it", passes).await;
}
