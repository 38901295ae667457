//! Joining an existing child: its outcome, or its unanswered messages, are delivered to the parent
//! again.

use crate::event::{Event, EventKind, Message, MessageBody};
use crate::id::RunId;
use crate::store::{Delivery, StoreError};
use crate::summary::Summary;

use super::activation::Activation;

impl Activation {
    /// The outcome of a child that is over, or the unanswered messages of a child that is older
    /// than this run: the history of its parent was lost, and the parent is begun again.
    pub(super) async fn joined(&self, child: &RunId) -> Result<Vec<Delivery>, StoreError> {
        let store = &self.shared.store;
        let Some(summary) = store.summary(child).await? else { return Ok(Vec::new()) };
        let is_over = summary.status.is_terminal();
        if !is_over && !self.is_older(&summary) {
            return Ok(Vec::new());
        }
        let events = store.read(child, summary.origin).await?;
        if is_over {
            let outcome = events.last().and_then(|event| event.kind.outcome());
            let ended = |outcome| self.child_ended(self.run.clone(), child.clone(), outcome);
            return Ok(outcome.map(ended).into_iter().collect());
        }
        let mail = store.mailbox(child).await?;
        Ok(unanswered(child, &events, &mail, &self.run))
    }

    fn is_older(&self, child: &Summary) -> bool {
        child.parent.as_ref() == Some(&self.run) && child.started_at < self.summary.started_at
    }
}

/// The messages that a run has sent to another since the last message from it, each with the
/// time of its sending.
fn unanswered(from: &RunId, events: &[Event], mail: &[Message], to: &RunId) -> Vec<Delivery> {
    let is_answer = |message: &Message| matches!(&message.body, MessageBody::Signal { from: Some(from), .. } if from == to);
    if mail.iter().any(is_answer) {
        return Vec::new();
    }
    let answered = events.iter().rposition(|event| {
        matches!(&event.kind, EventKind::MessageReceived { message: Some(message), .. }
            if is_answer(message))
    });
    let rest = answered.map_or(events, |answered| &events[answered + 1..]);
    let sent = |event: &Event| {
        let (receiver, body) = event.kind.sent(from)?;
        (receiver == to).then(|| Delivery { to: to.clone(), at: event.at, body })
    };
    rest.iter().filter_map(sent).collect()
}
