//! Messages of which the log holds the sending, and neither that the receiver has taken them nor
//! that they wait in its mailbox. The end of the receiver's history was lost, and it would wait for
//! them for ever.
//!
//! A message has the time of the event that records its sending, so a message that was delivered
//! again is the same one.

use std::collections::{BTreeMap, HashMap, HashSet};

use chrono::{DateTime, Utc};
use longhaul_engine::event::{Cause, RequestedBy};
use longhaul_engine::store::Delivery;
use longhaul_engine::{Event, EventKind, Message, MessageBody, RunId, Summary};

use super::{Finding, Findings, Remedy};
use crate::snapshot::Records;

/// A message that is to be delivered again.
#[derive(Debug)]
pub(super) struct Undelivered {
    /// For people.
    pub(super) what: String,
    pub(super) delivery: Delivery,
}

/// What the histories say about messages between runs.
#[derive(Debug, Default)]
pub(super) struct Post {
    sent: Vec<Sent>,
    receivers: HashMap<RunId, Receiver>,
}

/// A message that a run has sent.
#[derive(Debug)]
struct Sent {
    from: RunId,
    name: String,
    delivery: Delivery,
}

/// A run that takes messages.
#[derive(Debug)]
struct Receiver {
    /// What was sent before was not for this life of the run.
    began: DateTime<Utc>,
    /// The senders and times of the signals that it has.
    signals: HashSet<(RunId, DateTime<Utc>)>,
    /// The requests to cancel that it has. When one was sent is not recorded, but when it was
    /// obeyed.
    cancels: Vec<(RequestedBy, DateTime<Utc>)>,
}

/// The events since the run was started, or started again; without those that a fork has copied.
pub(super) fn this_life(events: &[Event]) -> impl Iterator<Item = &Event> {
    let begin = begin(events);
    let began = events.get(begin).map(|event| event.at);
    events[begin..].iter().filter(move |event| Some(event.at) >= began)
}

fn begin(events: &[Event]) -> usize {
    let is_begin = |event: &Event| matches!(&event.kind, EventKind::RunStarted { cause, .. } if *cause != Cause::ContinuedAsNew);
    events.iter().rposition(is_begin).unwrap_or(0)
}

impl Post {
    pub(super) fn look_at(
        &mut self,
        run: &RunId,
        summary: &Summary,
        events: &[Event],
        mail: Vec<Message>,
    ) {
        for event in this_life(events) {
            if let EventKind::SignalSent { to, name, payload, .. } = &event.kind {
                let body = MessageBody::sent(name, payload, run);
                let delivery = Delivery { to: to.clone(), at: event.at, body };
                self.sent.push(Sent { from: run.clone(), name: name.clone(), delivery });
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
                    receiver.has(message.clone());
                }
                EventKind::CancelDelivered { request, .. } => {
                    receiver.cancels.push((request.clone(), event.at));
                }
                _ => {}
            }
        }
        for message in mail {
            receiver.has(message);
        }
        self.receivers.insert(run.clone(), receiver);
    }
}

impl Receiver {
    fn has(&mut self, message: Message) {
        match message.body {
            MessageBody::Signal { from: Some(from), .. } => {
                self.signals.insert((from, message.at));
            }
            MessageBody::Cancel(request) => self.cancels.push((request, message.at)),
            _ => {}
        }
    }

    fn lacks(&self, sent: &Sent) -> bool {
        let Delivery { at, body, .. } = &sent.delivery;
        let is_there = match body {
            MessageBody::Cancel(asked) => {
                self.cancels.iter().any(|(request, since)| request == asked && since >= at)
            }
            _ => self.signals.contains(&(sent.from.clone(), *at)),
        };
        *at > self.began && !is_there
    }
}

impl Findings {
    /// What runs wait for and would never get. To be called when all runs were looked at.
    pub(super) fn lost_between_runs(&mut self, runs: &BTreeMap<RunId, Records>) {
        let outcomes = self.lost_children(runs);
        let Post { sent, receivers } = std::mem::take(&mut self.post);
        let sent = sent
            .into_iter()
            .filter(|sent| receivers.get(&sent.delivery.to).is_some_and(|to| to.lacks(sent)));
        let signals = sent.map(|Sent { from, name, delivery }| Undelivered {
            what: format!("the message `{name}` of {from}"),
            delivery,
        });
        let mut lost: Vec<Undelivered> = signals.chain(outcomes).collect();
        // In the order in which they were sent.
        lost.sort_by_key(|one| one.delivery.at);
        for Undelivered { what, delivery } in lost {
            let (record, sent) =
                (format!("mailbox of run {}", delivery.to), delivery.at.format("%F %T UTC"));
            let what =
                format!("{what}, sent {sent}, is neither here nor in the history of the run");
            self.found.push(Finding { record, what, remedy: Remedy::Deliver(delivery) });
        }
    }
}
