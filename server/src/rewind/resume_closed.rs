//! Resume of a closed run: a blocked feature starts a new run from the state of its work.

use longhaul_engine::{MessageBody, Payload, RequestedBy, RunId, StoreError};
use longhaul_workflows::backlog::FeatureStatus;
use longhaul_workflows::project::{FeatureView, signal};

use crate::advice;
use crate::pruned;

use crate::deliver::Delivered;
use crate::request::RequestError;
use crate::service::Service;

impl Service {
    /// Unblocks the feature of a closed run, so that its project starts another run.
    pub(crate) async fn resume_closed(
        &self,
        run: &RunId,
        request: &RequestedBy,
        dry_run: bool,
    ) -> Result<Delivered, RequestError> {
        if let Some(at) = self.store.summary(run).await?.and_then(|summary| summary.pruned_at()) {
            let gone = pruned::refusal(run, at);
            return Err(RequestError::refused(gone));
        }
        let origin = self.origin(run).await?;
        let run = &origin.run;
        let last = &origin.last.run;
        let feature = &origin.input.feature.id;
        if run != last {
            return Err(RequestError::refused(format!(
                "{run} is superseded by {last}; {} resumes {last}",
                advice::on("resume", last)
            )));
        }
        let project = RunId::new(origin.input.project.id.clone())
            .map_err(|error| StoreError::Unusable(format!("run {run}: {error}")))?;
        let published = self.store.published(&project).await?;
        let view = published
            .get(&FeatureView::key(feature))
            .and_then(|view| view.read::<FeatureView>().ok());
        match view.map(|view| view.status) {
            Some(FeatureStatus::Completed) => Err(RequestError::refused(format!(
                "{feature} passes: there is nothing to resume; {} does it again",
                advice::on("restart", run)
            ))),
            Some(FeatureStatus::Blocked | FeatureStatus::InProgress) => {
                let payload = Payload::of(feature);
                let body = MessageBody::signal_by(signal::UNBLOCK, payload, request.clone());
                self.is_open(&project).await?;
                let waits = self.waits(&project);
                if !dry_run {
                    self.deliver(&project, body).await?;
                }
                let run = origin.next.run.clone();
                Ok(Delivered { runs: vec![self.receiver(run, waits).await?] })
            }
            _ => Err(RequestError::refused(format!(
                "{feature} is pending already; {} starts it",
                advice::run(&origin.input.project.root)
            ))),
        }
    }
}
