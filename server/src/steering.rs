//! Delivers orders to runs: finds the runs, validates the order, sends the message.

use super::head::awaited;
use crate::run_kind::RunKind;
use futures_util::future::join_all;
use longhaul_engine::{MessageBody, Payload, RequestedBy, RunId, Status, StoreError, Summary};
use longhaul_workflows::feature::Approval;
use longhaul_workflows::project::{SyncRequest, signal};
use longhaul_workflows::projection::State;
use longhaul_workflows::session::{SessionProgress, SessionUsed};
use serde::{Deserialize, Serialize};

use crate::advice;
use crate::head::RunHead;
use crate::signals;
use crate::views::states::Projects;
use crate::views::why::batch::continues_batch;

use crate::deliver::Delivered;
use crate::order::Order;
use crate::perform::request;
use crate::request::RequestError;
use crate::service::Service;

/// Sends an order to a run, or to a project and its runs.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Steer {
    /// The run.
    pub target: RunId,
    /// The order.
    pub order: Order,
    /// The requester, and the reason.
    pub request: RequestedBy,
    /// Whether to only report the runs that it would reach.
    pub dry_run: bool,
}

request!(Steer, "steer" -> Delivered, command: (!self.dry_run).then(|| self.order.verb()),
    |self, service| service.steer(&self).await);

impl Service {
    /// Sends the order, or in a dry run only returns the receivers. An order to a batch goes to the
    /// projects that it has begun, too.
    pub(crate) async fn steer(&self, steer: &Steer) -> Result<Delivered, RequestError> {
        let summary = self.existing(&steer.target).await?;
        let is_for_projects =
            matches!(steer.order, Order::Pause | Order::Resume | Order::Cancel | Order::Terminate);
        if RunKind::of(&summary) != RunKind::Batch || !is_for_projects {
            return self.steer_one(steer, summary).await;
        }
        // No project may begin between the order to the batch and those to its projects.
        let _steering = self.batches.steering.lock().await;
        let mut delivered = self.steer_one(steer, summary).await?;
        let projects = self.begun_projects(&steer.target).await?.into_iter().map(async |target| {
            let Some(summary) = self.store.summary(&target).await? else {
                return Ok(Delivered { runs: Vec::new() });
            };
            self.steer_one(&Steer { target, ..steer.clone() }, summary).await
        });
        for outcome in join_all(projects).await {
            match outcome {
                Ok(more) => delivered.runs.extend(more.runs),
                // A project that is over, or in that state already, needs no order.
                Err(
                    RequestError::Refused { .. }
                    | RequestError::AlreadyDone { .. }
                    | RequestError::Held { .. },
                ) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(delivered)
    }

    async fn steer_one(&self, steer: &Steer, summary: Summary) -> Result<Delivered, RequestError> {
        let Steer { target, order, request, dry_run } = steer;
        if *order == Order::Resume
            && RunKind::of(&summary) == RunKind::Feature
            && let Some(delivered) =
                self.resume_feature(target, &summary, request, *dry_run).await?
        {
            return Ok(delivered);
        }
        if summary.status.is_terminal() {
            let standing = self.view().standing(target, &summary, &mut Projects::default()).await?;
            let state = standing.state;
            let again = if state == State::Blocked {
                format!("; {} tries it again", advice::on("resume", target))
            } else if let Some(again) = continues_batch(&summary.labels) {
                format!("; {again}")
            } else {
                String::new()
            };
            return Err(RequestError::refused(format!("run {target} is over: {state}{again}")));
        }
        if let Some(reason) = self.why_not(target, &summary, order).await? {
            return Err(RequestError::refused(reason));
        }
        let receivers = self.receivers(target, &summary, order).await?;
        let waits = self.waits(target);
        let mut runs = Vec::new();
        for run in receivers {
            if *dry_run
                || self.tell(&run, run == *target && is_project(&summary), order, request).await?
            {
                runs.push(self.receiver(run, waits).await?);
            }
        }
        if *order == Order::Terminate && !dry_run {
            // Only now, so that all agents end at the same time.
            for receiver in &runs {
                self.settle_terminated(&receiver.run).await?;
            }
        }
        Ok(Delivered { runs })
    }

    /// The response to a resume of a feature run that is not paused.
    async fn resume_feature(
        &self,
        run: &RunId,
        summary: &Summary,
        request: &RequestedBy,
        dry_run: bool,
    ) -> Result<Option<Delivered>, RequestError> {
        let head = RunHead::of(&*self.store, run).await?;
        if let Some(end) =
            head.filter(|_| !summary.status.is_terminal()).and_then(|it| it.end_order())
        {
            // A resume behind it would be lost with the run.
            return Err(RequestError::held(format!(
                "run {run} has an unread request to {end}: `longhaul run` follows it, then {} \
                 continues the feature",
                advice::on("resume", run)
            )));
        }
        match &summary.status {
            Status::Paused(_) => Ok(None),
            Status::Parked(effect) => Err(RequestError::held(format!(
                "run {run} is parked: {effect}; {} settles it",
                advice::reconcile(run)
            ))),
            status if status.is_terminal() => {
                self.resume_closed(run, request, dry_run).await.map(Some)
            }
            _ if self.is_to_pause(run).await? => Ok(None),
            status => {
                let reason = format!("is {}: there is nothing to resume", status.name());
                Err(RequestError::AlreadyDone { reason })
            }
        }
    }

    /// Whether an unread pause waits in the mailbox.
    pub(crate) async fn is_to_pause(&self, run: &RunId) -> Result<bool, StoreError> {
        Ok(RunHead::of(&*self.store, run)
            .await?
            .and_then(|head| head.pause_order())
            .unwrap_or(false))
    }

    /// Whether no process runs it, so that messages stay unread.
    pub(crate) fn waits(&self, run: &RunId) -> bool {
        !self.owner().runs(run)
    }

    /// Why the order does not apply to this run.
    async fn why_not(
        &self,
        run: &RunId,
        summary: &Summary,
        order: &Order,
    ) -> Result<Option<String>, StoreError> {
        if let Order::Signal { name, payload } = order
            && let Err(reason) = signals::check(&summary.workflow, name, &Payload::of(payload))
        {
            return Ok(Some(reason));
        }
        let takes =
            RunKind::of(summary) == RunKind::Feature || (is_project(summary) && !order.is_answer());
        if order.is_for_features() && !takes {
            return Ok(Some(format!(
                "run {run} is no run of a feature: name a feature or its run"
            )));
        }
        if !order.is_answer() {
            return Ok(None);
        }
        if awaited(&*self.store, run).await?.is_none() {
            return Ok(Some(format!("run {run} does not wait for approval")));
        }
        let answered = RunHead::of(&*self.store, run).await?.is_some_and(|head| head.is_answered());
        Ok(answered.then(|| format!("run {run} has an answer in its mailbox already")))
    }

    /// The receivers: the run with its sessions, or a project with its runs. A cancelled feature
    /// run ends its sessions itself, and passes notes on to them.
    async fn receivers(
        &self,
        target: &RunId,
        summary: &Summary,
        order: &Order,
    ) -> Result<Vec<RunId>, StoreError> {
        let is_whole =
            is_project(summary) || matches!(order, Order::Pause | Order::Resume | Order::Terminate);
        if !is_whole || matches!(order, Order::Signal { .. }) {
            return Ok(vec![target.clone()]);
        }
        let runs = self.store.runs(target.as_str()).await?.into_iter();
        let runs = runs.filter(|(run, summary)| {
            run.is_within(target.as_str())
                && !summary.status.is_terminal()
                && (!order.is_for_features() || RunKind::of(summary) != RunKind::Session)
        });
        Ok(runs
            .map(|(run, _)| run)
            .filter(|run| run != target || !order.is_for_features())
            .collect())
    }

    async fn tell(
        &self,
        run: &RunId,
        is_project: bool,
        order: &Order,
        request: &RequestedBy,
    ) -> Result<bool, StoreError> {
        if is_project && let Some((name, payload)) = project_signal(order, request) {
            let body = MessageBody::signal(name, payload);
            let delivered = self.deliver(run, body).await?;
            // A cancelled project stays open and can run again; only its feature runs end. A paused
            // run would not read the message.
            if *order != Order::Resume {
                if RunHead::of(&*self.store, run).await?.is_some_and(|head| head.is_held_by_pause())
                {
                    self.deliver(run, MessageBody::Resume(request.clone())).await?;
                }
                return Ok(delivered);
            }
        }
        let body = match order.message(request) {
            Some(body) => body,
            None => self.approval(run, *order == Order::Approve, request).await?,
        };
        self.deliver(run, body).await
    }

    /// Reports the use of a terminated session to the project: its workflow does not run again.
    async fn settle_terminated(&self, run: &RunId) -> Result<(), StoreError> {
        if let Some(engine) = &self.engine
            && !self.waits(run)
        {
            // An answer may be recorded until the end of the run.
            engine.outcome(run).await?;
        }
        let published = self.store.published(run).await?;
        let progress = published.get(SessionProgress::KEY);
        let progress = progress.and_then(|value| value.read::<SessionProgress>().ok());
        let (Some(progress), Ok(project)) = (progress, RunId::new(run.root())) else {
            return Ok(());
        };
        let payload = Payload::of(&SessionUsed { used: progress.used() });
        let name = SessionUsed::SIGNAL.to_owned();
        let from = Some(run.clone());
        self.deliver(&project, MessageBody::Signal { name, payload, from, request: None }).await?;
        Ok(())
    }

    async fn approval(
        &self,
        run: &RunId,
        approved: bool,
        request: &RequestedBy,
    ) -> Result<MessageBody, StoreError> {
        let commit = awaited(&*self.store, run).await?.map(|awaited| awaited.commit);
        let approval =
            Approval { approved, commit, by: request.by.clone(), why: request.why.clone() };
        Ok(MessageBody::signal(Approval::SIGNAL, Payload::of(&approval)))
    }
}

fn is_project(summary: &Summary) -> bool {
    RunKind::of(summary) == RunKind::Project
}

/// The message that the workflow of the project needs.
fn project_signal(order: &Order, request: &RequestedBy) -> Option<(&'static str, Payload)> {
    match order {
        Order::Cancel => Some((signal::HALT, Payload::of(request))),
        Order::Resume => {
            Some((signal::SYNC, Payload::of(&SyncRequest::of_all(uuid::Uuid::now_v7()))))
        }
        _ => None,
    }
}
