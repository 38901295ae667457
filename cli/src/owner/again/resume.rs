//! Resuming: what was paused goes on, what was blocked is tried again from where its work stands.

use longhaul_engine::{MessageBody, Payload, Request, RunId, Status, StoreError};
use longhaul_workflows::backlog::FeatureStatus;
use longhaul_workflows::feature::FeatureWorkflow;
use longhaul_workflows::project::{FeatureView, Unblock, signal};

use super::super::desk::{Answer, Desk, Order};
use super::fork::Origin;
use super::{Report, refused, report};

impl Desk {
    pub(super) async fn resume(&self, run: RunId, request: Request) -> Result<Answer, StoreError> {
        if let Some(summary) = self.store.summary(&run).await?
            && summary.workflow != FeatureWorkflow::NAME
        {
            return self.steer(run, Order::Resume, request).await;
        }
        let origin = match self.origin(&run).await? {
            Ok(origin) => origin,
            Err(answer) => return Ok(answer),
        };
        let summary = self.store.summary(&origin.run).await?.ok_or(StoreError::UnknownRun(run))?;
        let run = origin.run.clone();
        match &summary.status {
            status if status.is_terminal() => self.try_again(&origin, request).await,
            Status::Parked(reason) => Ok(report(Report::Held { reason: format!("run {run} is parked: {reason}") })),
            Status::Paused(_) => self.steer(run, Order::Resume, request).await,
            _ if self.is_to_pause(&run).await? => self.steer(run, Order::Resume, request).await,
            status => {
                let goes_on = if self.engine.is_some() { "" } else { "; `longhaul run` goes on with it" };
                let text = format!("{run} is {}: there is nothing to resume{goes_on}", status.name());
                Ok(report(Report::Said { text }))
            }
        }
    }

    /// Whether an order to pause waits in the mailbox.
    pub(super) async fn is_to_pause(&self, run: &RunId) -> Result<bool, StoreError> {
        let messages = self.store.mailbox(run).await?;
        let last = messages.iter().rev().find_map(|message| match message.body {
            MessageBody::Pause(_) => Some(true),
            MessageBody::Resume(_) => Some(false),
            _ => None,
        });
        Ok(last.unwrap_or(false))
    }

    /// A run that is over: its feature gets another one, if it is blocked.
    async fn try_again(&self, origin: &Origin, request: Request) -> Result<Answer, StoreError> {
        let (run, last, feature) = (&origin.run, &origin.last.0, &origin.brief.feature.id);
        if run != last {
            return Ok(refused(format!("{run} is over, and {last} came after it; resume that one, or fork this one")));
        }
        let project = RunId::new(origin.brief.project.id.clone())
            .map_err(|error| StoreError::Unusable(format!("run {run}: {error}")))?;
        let published = self.store.published(&project).await?;
        let view = published.get(&FeatureView::key(feature)).and_then(|view| view.read::<FeatureView>().ok());
        match view.map(|view| view.status) {
            Some(FeatureStatus::Completed) => Ok(refused(format!(
                "{feature} passes: there is nothing to resume; `longhaul fork {run} --from STEP` or `longhaul restart \
                 {run}` does it again"
            ))),
            Some(FeatureStatus::Blocked | FeatureStatus::InProgress) => {
                let payload = Payload::of(&Unblock::Asked { feature: feature.clone(), request });
                let body = MessageBody::Signal { name: signal::UNBLOCK.into(), payload, from: None };
                self.deliver(&project, body).await?;
                let text = format!("{feature}: tried again from its last checkpoint, as run {}", origin.next.0);
                Ok(report(Report::Said { text }))
            }
            _ => Ok(report(Report::Said { text: format!("{feature} is to be worked on already: `longhaul run`") })),
        }
    }
}
