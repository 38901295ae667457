//! The mailbox of a run that is in memory.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Mutex, PoisonError};

use tokio::sync::Notify;

use crate::context::{Filter, Received};
use crate::event::{Message, MessageBody, RequestedBy};
use crate::id::MessageSeq;

/// Messages that lie in the store and were not taken yet.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    state: Mutex<State>,
    arrived: Notify,
}

#[derive(Debug, Default)]
struct State {
    waiting: BTreeMap<MessageSeq, Message>,
    /// A message can arrive twice, read from the store and handed over by its sender: it counts
    /// once.
    taken: HashSet<MessageSeq>,
    /// Whether something arrived since the run last looked.
    unseen: bool,
    /// Whether the store may hold what is not here.
    unread: bool,
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

    /// Has the run read its mailbox in the store and look again before it leaves memory.
    pub(crate) fn nudge(&self) {
        let mut state = self.state();
        (state.unseen, state.unread) = (true, true);
        self.arrived.notify_one();
    }

    /// Whether the mailbox in the store is to be read; not again, until the next nudge.
    pub(crate) fn take_unread(&self) -> bool {
        std::mem::take(&mut self.state().unread)
    }

    /// Resolves when something arrived since the last call.
    pub(crate) async fn arrived(&self) {
        self.arrived.notified().await;
    }

    /// The oldest message that a filter takes, whole and as the workflow receives it; it stays
    /// until [`Inbox::take`].
    pub(crate) fn first_message(&self, filter: &Filter) -> Option<(Message, Received)> {
        let state = self.state();
        let taken = |message: &Message| {
            let received = Received::of(&message.body).filter(|received| filter.takes(received))?;
            Some((message.clone(), received))
        };
        state.waiting.values().find_map(taken)
    }

    /// The oldest order to the engine that can be followed at any time; it stays until
    /// [`Inbox::take`].
    pub(crate) fn first_order(&self) -> Option<Message> {
        let is_order = |body: &MessageBody| {
            matches!(body, MessageBody::Pause(_) | MessageBody::Resume(_) | MessageBody::Cancel(_))
        };
        self.first(is_order)
    }

    /// The oldest request to cancel; it stays until [`Inbox::take`].
    pub(crate) fn first_cancel(&self) -> Option<Message> {
        self.first(|body| matches!(body, MessageBody::Cancel(_)))
    }

    /// Whether it ends with a pause that was not followed yet.
    pub(crate) fn is_to_pause(&self) -> bool {
        let state = self.state();
        let mut bodies = state.waiting.values().rev().map(|message| &message.body);
        let last =
            bodies.find(|body| matches!(body, MessageBody::Pause(_) | MessageBody::Resume(_)));
        last.is_some_and(|body| matches!(body, MessageBody::Pause(_)))
    }

    /// The oldest request to end now; it stays until [`Inbox::take`].
    pub(crate) fn first_terminate(&self) -> Option<(MessageSeq, RequestedBy)> {
        let state = self.state();
        state.waiting.values().find_map(|message| match &message.body {
            MessageBody::Terminate(request) => Some((message.seq, request.clone())),
            _ => None,
        })
    }

    /// Whether a request to end now is here, or may lie unread in the store.
    pub(crate) fn may_hold_terminate(&self) -> bool {
        let state = self.state();
        state.unread
            || state
                .waiting
                .values()
                .any(|message| matches!(message.body, MessageBody::Terminate(_)))
    }

    /// The oldest word on an unknown outcome; it stays until [`Inbox::take`].
    pub(crate) fn first_reconcile(&self) -> Option<Message> {
        self.first(|body| matches!(body, MessageBody::Reconcile { .. }))
    }

    /// Says that the run looks now: what is here already will not keep it in memory.
    pub(crate) fn look(&self) {
        self.state().unseen = false;
    }

    /// Whether something arrived since the run last looked.
    pub(crate) fn has_unseen(&self) -> bool {
        self.state().unseen
    }

    /// Takes a message out, after the store has.
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
