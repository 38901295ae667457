//! Ending a run now: what is under way is aborted, and the workflow is not asked.

use crate::context::Stop;
use crate::event::{EventKind, Outcome};

use super::activation::{Activation, Retirement};

impl Activation {
    /// Ends the run if its mailbox asks for that; then it never returns.
    pub(super) async fn obey_terminate(&mut self) -> Result<(), Stop> {
        if self.terminate().await? {
            self.retire(Retirement::Terminated).await;
        }
        Ok(())
    }

    /// Ends the run if its mailbox asks for that. This precedes all other orders and messages, so
    /// the store is read here.
    pub(crate) async fn terminate(&mut self) -> Result<bool, Stop> {
        self.read_mail().await?;
        let Some((seq, request)) = self.inbox.first_terminate() else { return Ok(false) };
        let told = self.told_parent(Outcome::Cancelled);
        self.commit(vec![EventKind::RunTerminated(request)], |commit| {
            commit.consumed.push(seq);
            commit.deliveries.extend(told);
        })
        .await?;
        Ok(true)
    }
}
