//! Makes decisions and messages durable, and then notifies the runs and readers that they affect.

use std::sync::Arc;

use crate::event::Message;
use crate::id::RunId;
use crate::store::{Commit, Committed, Delivery, StoreError};

use super::inbox::Inbox;
use super::reservation::Reservation;
use super::shared::{Change, Shared};

/// The recipient of a message, with the inbox that it had in memory before.
struct Recipient {
    run: RunId,
    inbox: Option<Arc<Inbox>>,
}

impl Shared {
    /// Makes a decision durable, then notifies all affected runs and readers.
    pub(crate) async fn record(&self, commit: Commit) -> Result<Committed, StoreError> {
        let reservation: Vec<_> =
            commit.creations.iter().map(|creation| Reservation::new(self, creation)).collect();
        let creations: Vec<RunId> =
            commit.creations.iter().map(|creation| creation.run.clone()).collect();
        let recipients: Vec<_> =
            commit.deliveries.iter().map(|delivery| self.recipient(&delivery.to)).collect();
        // Built even without subscribers: one that subscribes during the commit would miss these
        // events otherwise.
        let change = Change { run: commit.run.clone(), events: commit.events.clone() };
        let committed = self.store.commit(commit).await?;
        for ((run, reservation), created) in
            creations.into_iter().zip(reservation).zip(&committed.created)
        {
            match reservation {
                Some(reservation) if *created => reservation.begin(),
                None if *created => self.wake(run),
                _ => {}
            }
        }
        for (recipient, message) in recipients.into_iter().zip(&committed.delivered) {
            if let Some(message) = message {
                self.hand_over(recipient, message.clone());
            }
        }
        self.notify(change);
        Ok(committed)
    }

    /// Puts a message into the mailbox of a run, and notifies the run. `false`: the run is over.
    pub(super) async fn deliver(&self, delivery: Delivery) -> Result<bool, StoreError> {
        let recipient = self.recipient(&delivery.to);
        let Some(message) = self.store.deliver(delivery).await? else { return Ok(false) };
        let change = Change { run: recipient.run.clone(), events: Vec::new() };
        self.hand_over(recipient, message);
        self.notify(change);
        Ok(true)
    }

    /// The recipient of a message that is about to be sent.
    fn recipient(&self, to: &RunId) -> Recipient {
        Recipient { run: to.clone(), inbox: self.residents().get(to).cloned() }
    }

    /// Pushes a stored message to the inbox of its run, or wakes the run. If the run was activated
    /// after the message was sent, it may have read it from the store, or even taken it: then it is
    /// told to read the store again.
    fn hand_over(&self, to: Recipient, message: Message) {
        // Under the lock, or the run could leave memory before the message is in its inbox.
        if let Some(inbox) = self.residents().get(&to.run) {
            let is_the_same = to.inbox.is_some_and(|known| Arc::ptr_eq(&known, inbox));
            return if is_the_same { inbox.push(message) } else { inbox.nudge() };
        }
        self.wake(to.run);
    }
}
