//! Undelivered messages: their sending is recorded, but the receiver has neither taken them nor
//! holds them in its mailbox. The end of the receiver's history was lost, and it would wait for
//! them forever.
//!
//! A message has the time of the event that records its sending, so a redelivered message is
//! recognised as the same one.

use std::collections::{BTreeMap, HashMap, HashSet};

use chrono::{DateTime, Utc};
use longhaul_engine::event::{Cause, RequestedBy};
use longhaul_engine::store::Delivery;
use longhaul_engine::{Event, EventKind, Message, MessageBody, RunId, Summary};

use super::{Finding, Findings, Remedy};
use crate::snapshot::Records;

/// A message to redeliver.
#[derive(Debug)]
pub(super) struct Undelivered {
    /// Description for people.
    pub(super) what: String,
    pub(super) delivery: Delivery,
}

/// The messages between runs, from the histories.
#[derive(Debug, Default)]
pub(super) struct MessageIndex {
    sent: Vec<SentMessage>,
    receivers: HashMap<RunId, Receiver>,
}

/// A message that a run has sent.
#[derive(Debug)]
struct SentMessage {
    from: RunId,
    delivery: Delivery,
}

/// A run that takes messages.
#[derive(Debug)]
struct Receiver {
    /// The time of the last start of this run: earlier messages were for the run before it.
    began: DateTime<Utc>,
    /// The senders and times of its signals.
    signals: HashSet<(RunId, DateTime<Utc>)>,
    /// Its requests to cancel. A history records when one took effect, not when it was sent.
    cancels: Vec<(RequestedBy, DateTime<Utc>)>,
}

/// The events since the run was last started, without those copied by a fork.
pub(super) fn since_start(events: &[Event]) -> impl Iterator<Item = &Event> {
    let begin = begin(events);
    let began = events.get(begin).map(|event| event.at);
    events[begin..].iter().filter(move |event| Some(event.at) >= began)
}

fn begin(events: &[Event]) -> usize {
    let is_begin = |event: &Event| {
        let kind = &event.kind;
        matches!(kind, EventKind::RunStarted { cause, .. } if *cause != Cause::ContinuedAsNew)
    };
    events.iter().rposition(is_begin).unwrap_or(0)
}

impl MessageIndex {
    pub(super) fn look_at(
        &mut self,
        run: &RunId,
        summary: &Summary,
        events: &[Event],
        mail: Vec<Message>,
    ) {
        for event in since_start(events) {
            if let Some((to, body)) = event.kind.sent(run) {
                let delivery = Delivery { to: to.clone(), at: event.at, body };
                self.sent.push(SentMessage { from: run.clone(), delivery });
            }
        }
        if summary.status.is_terminal() {
            return;
        }
        let began = events[begin(events)].at;
        let mut receiver = Receiver { began, signals: HashSet::new(), cancels: Vec::new() };
        for event in events {
            match &event.kind {
                EventKind::MessageReceived { message: Some(message), .. } => {
                    receiver.add(message.clone());
                }
                EventKind::CancelDelivered { request, .. } => {
                    receiver.cancels.push((request.clone(), event.at));
                }
                _ => {}
            }
        }
        for message in mail {
            receiver.add(message);
        }
        self.receivers.insert(run.clone(), receiver);
    }
}

impl Receiver {
    fn add(&mut self, message: Message) {
        match message.body {
            MessageBody::Signal { from: Some(from), .. } => {
                self.signals.insert((from, message.at));
            }
            MessageBody::Cancel(request) => self.cancels.push((request, message.at)),
            _ => {}
        }
    }

    fn lacks(&self, sent: &SentMessage) -> bool {
        let Delivery { at, body, .. } = &sent.delivery;
        let is_there = match body {
            MessageBody::Cancel(cancel) => {
                self.cancels.iter().any(|(request, since)| request == cancel && since >= at)
            }
            _ => self.signals.contains(&(sent.from.clone(), *at)),
        };
        *at > self.began && !is_there
    }
}

impl Findings {
    /// The lost messages that runs wait for. Call it after all runs were added.
    pub(super) fn lost_between_runs(&mut self, runs: &BTreeMap<RunId, Records>) {
        let outcomes = self.lost_children(runs);
        let MessageIndex { sent, receivers } = std::mem::take(&mut self.post);
        let sent = sent
            .into_iter()
            .filter(|sent| receivers.get(&sent.delivery.to).is_some_and(|to| to.lacks(sent)));
        let signals = sent.map(|SentMessage { from, delivery }| {
            let what = match &delivery.body {
                MessageBody::Signal { name, .. } => format!("the message `{name}` of {from}"),
                _ => format!("the request to cancel of {from}"),
            };
            Undelivered { what, delivery }
        });
        let mut lost: Vec<Undelivered> = signals.chain(outcomes).collect();
        // In the order of sending.
        lost.sort_by_key(|one| one.delivery.at);
        for Undelivered { what, delivery } in lost {
            let record = format!("mailbox of run {}", delivery.to);
            let sent = delivery.at.format("%F %T UTC");
            let what =
                format!("{what}, sent {sent}, is neither here nor in the history of the run");
            self.found.push(Finding { record, what, remedy: Remedy::Deliver(delivery) });
        }
    }
}
