//! Termination: aborts the command under way, without running the workflow again.

use crate::context::Stop;
use crate::event::{EventKind, Outcome};

use super::activation::{Activation, Retirement};

impl Activation {
    /// Ends the run if its mailbox holds a termination; then it never returns.
    pub(super) async fn terminate_if_requested(&mut self) -> Result<(), Stop> {
        if self.terminate().await? {
            self.retire(Retirement::Terminated).await;
        }
        Ok(())
    }

    /// Ends the run if its mailbox holds a termination. It precedes all other messages, so the
    /// store is read here.
    pub(crate) async fn terminate(&mut self) -> Result<bool, Stop> {
        self.read_mail().await?;
        let Some((seq, request)) = self.inbox.first_terminate() else { return Ok(false) };
        let delivery = self.parent_delivery(Outcome::Cancelled);
        self.commit(vec![EventKind::RunTerminated(request)], |commit| {
            commit.consumed.push(seq);
            commit.deliveries.extend(delivery);
        })
        .await?;
        Ok(true)
    }
}
