//! Writes the decisions of a run. Values for readers only are not committed alone but with the next
//! commit, so that the removal of a message and the values published because of it become visible
//! together.

use crate::context::Stop;
use crate::event::{Event, EventKind, Message};
use crate::id::MessageSeq;
use crate::payload::Payload;
use crate::store::{Commit, Delivery};

use super::activation::Activation;
use super::unwritten::Unwritten;

/// The most events collected for the next commit, which bounds its size.
const UNWRITTEN_MAX: usize = 256;

impl Activation {
    /// Appends events. When this returns, they are durable; if it fails, this activation is over.
    pub(super) async fn commit(
        &mut self,
        kinds: Vec<EventKind>,
        rest: impl FnOnce(&mut Commit) + Send,
    ) -> Result<(), Stop> {
        let at = self.shared.clock.now();
        let Unwritten { events: before, consumed, published } = std::mem::take(&mut self.unwritten);
        let mut changed = false;
        let mut events = Vec::with_capacity(before.len() + kinds.len());
        for (at, kind) in before.into_iter().chain(kinds.into_iter().map(|kind| (at, kind))) {
            let event = Event { position: self.next + events.len() as u64, at, kind };
            changed |= self.summary.apply(&event);
            events.push(event);
        }
        let count = events.len() as u64;
        let mut commit = Commit { consumed, published, ..Commit::of(self.run.clone(), events) };
        commit.summary = changed.then(|| self.summary.clone());
        rest(&mut commit);
        match self.shared.record(commit).await {
            Ok(_) => {
                self.next += count;
                Ok(())
            }
            Err(error) => Err(self.broken_by(error.into())),
        }
    }

    /// Appends events that take a message out of the mailbox.
    pub(super) async fn commit_taking(
        &mut self,
        seq: MessageSeq,
        kinds: Vec<EventKind>,
    ) -> Result<(), Stop> {
        self.commit(kinds, |commit| commit.consumed.push(seq)).await?;
        self.inbox.take(seq);
        Ok(())
    }

    /// Commits an event and the message that it sends.
    pub(super) async fn commit_sent(&mut self, kind: EventKind) -> Result<(), Stop> {
        let now = self.shared.clock.now();
        let (to, body) = kind.sent(&self.run).expect("the event sends a message");
        let to = to.clone();
        // The message has the time of its event, so that a check of the log can detect a lost one.
        let send = |commit: &mut Commit| {
            let at = commit.events.last().map_or(now, |event| event.at);
            commit.deliveries.push(Delivery { to, at, body });
        };
        self.commit(vec![kind], send).await
    }

    /// Commits the unwritten events: before an effect begins, and before a long operation.
    pub(super) async fn write_all(&mut self) -> Result<(), Stop> {
        if self.unwritten.is_empty() { Ok(()) } else { self.commit(Vec::new(), |_| ()).await }
    }

    /// The message is taken with the next commit.
    pub(super) async fn write_taken(&mut self, number: u32, message: Message) -> Result<(), Stop> {
        self.inbox.take(message.seq);
        self.unwritten.consumed.push(message.seq);
        self.write_later(EventKind::MessageReceived { command: number, message: Some(message) })
            .await
    }

    /// The value is published with the next commit.
    pub(super) async fn write_published(
        &mut self,
        number: u32,
        key: &str,
        value: Payload,
    ) -> Result<(), Stop> {
        let kept = (value != Payload::null()).then(|| value.clone());
        self.unwritten.published.retain(|(earlier, _)| earlier != key);
        self.unwritten.published.push((key.into(), kept));
        self.write_later(EventKind::StatusPublished { command: number, key: key.into(), value })
            .await
    }

    /// The event goes with the next commit.
    pub(super) async fn write_later(&mut self, kind: EventKind) -> Result<(), Stop> {
        self.unwritten.events.push((self.shared.clock.now(), kind));
        if self.unwritten.events.len() >= UNWRITTEN_MAX { self.write_all().await } else { Ok(()) }
    }
}
