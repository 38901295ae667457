//! The mailbox of a run that is in memory.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Mutex, PoisonError};

use tokio::sync::Notify;

use crate::context::{Filter, Received};
use crate::event::{Message, MessageBody, RequestedBy};
use crate::id::MessageSeq;

/// Messages that are in the store and not yet taken.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    state: Mutex<State>,
    arrived: Notify,
}

#[derive(Debug, Default)]
struct State {
    waiting: BTreeMap<MessageSeq, Message>,
    /// A message can arrive twice, from the store and from its sender in memory: it counts once.
    taken: HashSet<MessageSeq>,
    /// Whether a message arrived since the run last looked.
    unseen: bool,
    /// Whether the store may hold messages that are not in memory.
    unread: bool,
    /// Whether the run was cancelled. Further requests to cancel stay here, so that they do not
    /// disturb the end of its work.
    cancelled: bool,
}

impl Inbox {
    pub(crate) fn push(&self, message: Message) {
        let mut state = self.state();
        if !state.taken.contains(&message.seq) {
            state.waiting.insert(message.seq, message);
            state.unseen = true;
            self.arrived.notify_one();
        }
    }

    /// Makes the run read its mailbox from the store and look again before it leaves memory.
    pub(crate) fn nudge(&self) {
        let mut state = self.state();
        state.unseen = true;
        state.unread = true;
        self.arrived.notify_one();
    }

    /// Whether the mailbox must be read from the store; resets the flag.
    pub(crate) fn take_unread(&self) -> bool {
        std::mem::take(&mut self.state().unread)
    }

    /// Resolves when a message arrived since the last call.
    pub(crate) async fn arrived(&self) {
        self.arrived.notified().await;
    }

    /// The oldest message that the filter takes, whole and as the workflow receives it; it stays
    /// until [`Inbox::take`].
    pub(crate) fn first_message(&self, filter: &Filter) -> Option<(Message, Received)> {
        let state = self.state();
        let taken = |message: &Message| {
            let received = Received::of(&message.body).filter(|received| filter.takes(received))?;
            Some((message.clone(), received))
        };
        state.waiting.values().find_map(taken)
    }

    /// The oldest control message that can be applied at any time; it stays until [`Inbox::take`].
    pub(crate) fn first_control_message(&self) -> Option<Message> {
        let is_cancelled = self.state().cancelled;
        self.first(|body| match body {
            MessageBody::Pause(_) | MessageBody::Resume(_) => true,
            MessageBody::Cancel(_) => !is_cancelled,
            _ => false,
        })
    }

    /// The oldest request to cancel, if it is the first of the run; it stays until [`Inbox::take`].
    pub(crate) fn first_cancel(&self) -> Option<Message> {
        if self.state().cancelled {
            return None;
        }
        self.first(|body| matches!(body, MessageBody::Cancel(_)))
    }

    /// Sets whether this segment of the run was cancelled: a request to cancel counts once.
    pub(crate) fn set_cancelled(&self, cancelled: bool) {
        self.state().cancelled = cancelled;
    }

    /// Whether it ends with a pause that is not yet applied.
    pub(crate) fn is_to_pause(&self) -> bool {
        let state = self.state();
        let mut bodies = state.waiting.values().rev().map(|message| &message.body);
        let last =
            bodies.find(|body| matches!(body, MessageBody::Pause(_) | MessageBody::Resume(_)));
        last.is_some_and(|body| matches!(body, MessageBody::Pause(_)))
    }

    /// The oldest request to terminate; it stays until [`Inbox::take`].
    pub(crate) fn first_terminate(&self) -> Option<(MessageSeq, RequestedBy)> {
        let state = self.state();
        state.waiting.values().find_map(|message| match &message.body {
            MessageBody::Terminate(request) => Some((message.seq, request.clone())),
            _ => None,
        })
    }

    /// Whether a request to terminate is in memory, or may be unread in the store.
    pub(crate) fn may_hold_terminate(&self) -> bool {
        let state = self.state();
        state.unread
            || state
                .waiting
                .values()
                .any(|message| matches!(message.body, MessageBody::Terminate(_)))
    }

    /// The oldest message that settles an unknown outcome; it stays until [`Inbox::take`].
    pub(crate) fn first_reconcile(&self) -> Option<Message> {
        self.first(|body| matches!(body, MessageBody::Reconcile { .. }))
    }

    /// Marks all current messages as seen, so that they do not keep the run in memory.
    pub(crate) fn look(&self) {
        self.state().unseen = false;
    }

    /// Whether a message arrived since the run last looked.
    pub(crate) fn has_unseen(&self) -> bool {
        self.state().unseen
    }

    /// Removes a message, after its removal from the store.
    pub(crate) fn take(&self, seq: MessageSeq) {
        let mut state = self.state();
        state.waiting.remove(&seq);
        state.taken.insert(seq);
    }

    fn first(&self, wanted: impl Fn(&MessageBody) -> bool) -> Option<Message> {
        self.state().waiting.values().find(|message| wanted(&message.body)).cloned()
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
