//! Ending a run now: what is under way is ended, and the workflow is not asked.

use crate::context::Stop;
use crate::event::{EventKind, Outcome};

use super::life::{Life, Retirement};

impl Life {
    /// Ends the run if somebody asked for that; then it never returns.
    ///
    /// A pause that is followed at once by the end is how a history says so, and who asked: replay passes over both, since
    /// no command of the workflow was answered by them.
    pub(super) async fn obey_terminate(&mut self) -> Result<(), Stop> {
        if self.terminate().await? {
            self.retire(Retirement::Terminated).await;
        }
        Ok(())
    }

    /// Ends the run if somebody asked for that. This comes before all other orders and messages, so the mailbox is read here.
    pub(crate) async fn terminate(&mut self) -> Result<bool, Stop> {
        self.read_mail().await?;
        let Some(message) = self.inbox.first_terminate() else { return Ok(false) };
        let request = message.body.as_terminate().unwrap_or_default();
        let told = self.told_parent(Outcome::Cancelled);
        self.commit(vec![EventKind::RunPaused(request), EventKind::RunCancelled], |commit| {
            commit.consumed.push(message.seq);
            commit.deliveries.extend(told);
        })
        .await?;
        Ok(true)
    }
}
