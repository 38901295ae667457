//! Resume of a closed run: a blocked feature starts a new run from the state of its work.

use longhaul_engine::{MessageBody, Payload, RequestedBy, RunId, StoreError};
use longhaul_workflows::backlog::FeatureStatus;
use longhaul_workflows::project::{FeatureView, Unblock, signal};

use crate::pruned;

use crate::request::RequestError;
use crate::service::{Delivered, Receiver, Service};

impl Service {
    /// Starts another run for the feature of a closed run, if the feature is blocked.
    pub(crate) async fn try_again(
        &self,
        run: &RunId,
        request: &RequestedBy,
        dry_run: bool,
    ) -> Result<Delivered, RequestError> {
        if let Some(at) = self.store.summary(run).await?.as_ref().and_then(pruned::at) {
            let gone = pruned::refusal(run, &at);
            return Err(RequestError::refused(format!(
                "{gone}; `longhaul feature unblock FEATURE` tries a blocked feature again"
            )));
        }
        let origin = self.origin(run).await?;
        let (run, last, feature) = (&origin.run, &origin.last.0, &origin.brief.feature.id);
        if run != last {
            return Err(RequestError::refused(format!(
                "{run} is over, and {last} came after it; resume that one, or fork this one"
            )));
        }
        let project = RunId::new(origin.brief.project.id.clone())
            .map_err(|error| StoreError::Unusable(format!("run {run}: {error}")))?;
        let published = self.store.published(&project).await?;
        let view = published
            .get(&FeatureView::key(feature))
            .and_then(|view| view.read::<FeatureView>().ok());
        match view.map(|view| view.status) {
            Some(FeatureStatus::Completed) => Err(RequestError::refused(format!(
                "{feature} passes: there is nothing to resume; `longhaul fork {run} --from STEP` or `longhaul restart \
                 {run}` does it again"
            ))),
            Some(FeatureStatus::Blocked | FeatureStatus::InProgress) => {
                let payload = Payload::of(&Unblock::Asked {
                    feature: feature.clone(),
                    request: request.clone(),
                });
                let body = MessageBody::signal(signal::UNBLOCK, payload);
                let waits = self.waits(&project);
                if !dry_run {
                    self.deliver(&project, body).await?;
                }
                let run = origin.next.0.clone();
                Ok(Delivered { runs: vec![Receiver { run, waits }] })
            }
            _ => Err(RequestError::refused(format!(
                "{feature} is to be worked on already: `longhaul run`"
            ))),
        }
    }
}
