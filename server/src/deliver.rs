//! Messages to runs: signals, the results of unknown effects, and the runs that received them.

use chrono::Utc;
use longhaul_engine::store::Delivery;
use longhaul_engine::{EventLog, MessageBody, Payload, RequestedBy, RunId, StoreError};
use longhaul_workflows::backlog::FeatureId;
use longhaul_workflows::project::signal;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::advice;
use crate::head::{RunHead, known_root};
use crate::perform::request;
use crate::request::RequestError;
use crate::run_kind::RunKind;
use crate::service::Service;
use crate::signals;

/// Sends a signal to a run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SendSignal {
    /// The run.
    pub run: RunId,
    /// The name of the signal.
    pub name: String,
    /// Its payload, as the workflow of the run reads it.
    pub payload: Value,
    /// The requester, and the reason.
    pub request: RequestedBy,
}

/// Settles an unknown outcome of a parked run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Reconcile {
    /// The run.
    pub run: RunId,
    /// Whether the effect happened.
    pub happened: bool,
    /// Its output, if it happened.
    pub output: Option<Value>,
    /// The requester, and the reason.
    pub request: RequestedBy,
}

/// The runs that were sent a message.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Delivered {
    /// The runs, in the order of their ids.
    pub runs: Vec<Receiver>,
}

/// A run that was sent a message.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Receiver {
    /// The run.
    pub run: RunId,
    /// Whether the message stays unread because no process runs this run now.
    pub waits: bool,
    /// The checkout of its project, if that is known.
    pub root: Option<String>,
}

impl Delivered {
    /// Whether a message stays unread.
    pub fn waits(&self) -> bool {
        self.runs.iter().any(|receiver| receiver.waits)
    }
}

request!(SendSignal, "signal" -> Delivered, command: Some("signal"),
    |self, service| self.run(&service).await);

impl SendSignal {
    async fn run(self, service: &Service) -> Result<Delivered, RequestError> {
        let Self { run, name, payload, request } = self;
        let summary = service.existing(&run).await?;
        let payload = Payload::of(&payload);
        signals::check(&summary.workflow, &name, &payload).map_err(RequestError::refused)?;
        if RunKind::of(&summary) == RunKind::Project {
            service.is_open(&run).await?;
        }
        service.deliver_one(run, MessageBody::signal_by(name, payload, request)).await
    }
}

request!(Reconcile, "reconcile" -> Delivered, command: Some("reconcile"),
    |self, service| self.run(&service).await);

impl Reconcile {
    async fn run(self, service: &Service) -> Result<Delivered, RequestError> {
        let Self { run, happened, output, request } = self;
        let summary = service.existing(&run).await?;
        if !matches!(summary.status, longhaul_engine::Status::Parked(_)) {
            let status = summary.status.name();
            return Err(RequestError::refused(format!(
                "run {run} is {status}: it waits for no word on an effect"
            )));
        }
        let head = RunHead::of(&*service.store, &run).await?;
        let is_settled = |body: &MessageBody| matches!(body, MessageBody::Reconcile { .. });
        if head.is_some_and(|head| head.has(is_settled)) {
            let reason = "it is reconciled already, and continues when its project runs next";
            return Err(RequestError::refused(reason));
        }
        let output = Payload::of(&output);
        service.deliver_one(run, MessageBody::Reconcile { happened, output, request }).await
    }
}

impl Service {
    pub(crate) async fn deliver_one(
        &self,
        run: RunId,
        body: MessageBody,
    ) -> Result<Delivered, RequestError> {
        let waits = self.waits(&run);
        let is_delivered = self.deliver(&run, body).await?;
        let runs = if is_delivered { vec![self.receiver(run, waits).await?] } else { Vec::new() };
        Ok(Delivered { runs })
    }

    /// An error if a project is closed, or closes when it takes its messages: a later one is lost.
    pub(crate) async fn is_open(&self, project: &RunId) -> Result<(), RequestError> {
        if !self.is_ending(project).await? {
            return Ok(());
        }
        let root = known_root(&*self.store, project).await?.unwrap_or_default();
        let again = advice::run(root);
        Err(RequestError::held(format!("project {project} is closed: {again} begins it again")))
    }

    /// A run that was sent a message, with its project.
    pub(crate) async fn receiver(&self, run: RunId, waits: bool) -> Result<Receiver, StoreError> {
        let root = match RunId::new(run.root()) {
            Ok(project) => known_root(&*self.store, &project).await?,
            Err(_) => None,
        };
        Ok(Receiver { run, waits, root })
    }

    pub(crate) async fn deliver(&self, to: &RunId, body: MessageBody) -> Result<bool, StoreError> {
        if let Some(feature) = unblocked(&body)
            && self.has_finished_work(to, &feature).await?
        {
            let payload = Payload::of(&feature);
            self.send(to, MessageBody::signal(signal::CALLED_DONE, payload)).await?;
        }
        self.send(to, body).await
    }

    async fn send(&self, to: &RunId, body: MessageBody) -> Result<bool, StoreError> {
        if let Some(engine) = &self.engine {
            return engine.deliver(to, body).await;
        }
        let delivery = Delivery { to: to.clone(), at: Utc::now(), body };
        Ok(self.log.deliver(delivery).await?.is_some())
    }
}

/// The feature that a signal unblocks.
fn unblocked(body: &MessageBody) -> Option<FeatureId> {
    match body {
        MessageBody::Signal { name, payload, from: None, .. } if name == signal::UNBLOCK => {
            payload.read().ok()
        }
        _ => None,
    }
}
