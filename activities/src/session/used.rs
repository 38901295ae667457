//! The use of a cancelled session of a known agent.

use async_trait::async_trait;
use longhaul_engine::{Attempt, Failure, Handler, Slot};
use longhaul_workflows::contracts::{ReadUse, SessionInput};
use longhaul_workflows::resources::Resources;

use super::SessionHandler;
use super::files::KeptConversation;

/// The handler of [`ReadUse`].
#[derive(Debug)]
pub struct UseHandler(SessionHandler);

impl UseHandler {
    /// The handler over the files of these sessions.
    pub fn new(sessions: SessionHandler) -> Self {
        Self(sessions)
    }
}

#[async_trait]
impl Handler<ReadUse> for UseHandler {
    async fn perform(&self, input: SessionInput, attempt: &Attempt) -> Result<Resources, Failure> {
        // The session is the first call of its run.
        let slot = Slot { command: 0, call: 0, calls: 1 };
        let session = Attempt { slot, ..attempt.clone() };
        let kept = self.0.files(&input, &session).conversation();
        let Some(KeptConversation { mut progress, .. }) = kept else {
            return Ok(Resources::default());
        };
        let model = Some(&progress.model).filter(|model| !model.is_empty());
        let cost = progress.cost_micros.or_else(|| self.0.cost(&input, model, &progress.usage));
        progress.cost_micros = cost;
        Ok(progress.used())
    }
}
