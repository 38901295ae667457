//! Children whose outcome a waiting run will never receive: the log has lost the whole child, or
//! its outcome.

use std::collections::{BTreeMap, HashMap};

use chrono::{DateTime, Utc};
use longhaul_engine::event::Cause;
use longhaul_engine::store::Delivery;
use longhaul_engine::{Event, EventKind, Message, MessageBody, Outcome, RunId, Summary};

use super::undelivered::{Undelivered, since_start};
use super::{Findings, Remedy};
use crate::key;
use crate::snapshot::Records;

/// The children named in the histories.
#[derive(Debug, Default)]
pub(super) struct Children {
    awaited: Vec<Awaited>,
    ended: HashMap<RunId, ChildOutcome>,
}

/// A child whose outcome is neither recorded nor in the mailbox of its parent.
#[derive(Debug)]
struct Awaited {
    parent: RunId,
    child: RunId,
    /// The start of the child as its parent recorded it, without labels.
    start: Event,
}

/// The outcome of a run.
#[derive(Debug)]
struct ChildOutcome {
    parent: Option<RunId>,
    at: DateTime<Utc>,
    outcome: Outcome,
}

impl Children {
    pub(super) fn look_at(
        &mut self,
        run: &RunId,
        summary: &Summary,
        events: &[Event],
        mail: &[Message],
    ) {
        if !summary.status.is_terminal() {
            self.awaited.extend(awaited(run, events, mail));
        } else if let Some(Event { at, kind, .. }) = events.last()
            && let Some(outcome) = kind.outcome()
        {
            self.ended.insert(
                run.clone(),
                ChildOutcome { parent: summary.parent.clone(), at: *at, outcome },
            );
        }
    }
}

impl ChildOutcome {
    /// Whether the engine has delivered this outcome to the waiting run: to the parent, or to a run
    /// that joined a finished child.
    fn was_delivered_to(&self, awaited: &Awaited) -> bool {
        self.parent.as_ref() == Some(&awaited.parent) || self.at <= awaited.start.at
    }
}

fn awaited(run: &RunId, events: &[Event], mail: &[Message]) -> Vec<Awaited> {
    let mut started = BTreeMap::new();
    for event in since_start(events) {
        match &event.kind {
            EventKind::ChildStarted { run: child, workflow, input, .. } => {
                let kind = EventKind::RunStarted {
                    workflow: workflow.clone(),
                    input: input.clone(),
                    parent: Some(run.clone()),
                    labels: BTreeMap::new(),
                    cause: Cause::Started,
                };
                started.insert(child, Event { position: 0, at: event.at, kind });
            }
            EventKind::MessageReceived { message: Some(message), .. } => {
                forget(&mut started, message);
            }
            _ => {}
        }
    }
    for message in mail {
        forget(&mut started, message);
    }
    let awaited = |(child, start): (&RunId, Event)| Awaited {
        parent: run.clone(),
        child: child.clone(),
        start,
    };
    started.into_iter().map(awaited).collect()
}

fn forget(started: &mut BTreeMap<&RunId, Event>, message: &Message) {
    if let MessageBody::ChildEnded { run, .. } = &message.body {
        started.remove(run);
    }
}

impl Findings {
    /// Reports lost children, and redelivers lost outcomes.
    pub(super) fn lost_children(&mut self, runs: &BTreeMap<RunId, Records>) -> Vec<Undelivered> {
        let Children { awaited, ended } = std::mem::take(&mut self.children);
        let mut lost = Vec::new();
        for awaited in awaited {
            let delivered =
                ended.get(&awaited.child).filter(|ended| ended.was_delivered_to(&awaited));
            let Awaited { parent, child, start } = awaited;
            if let Some(ChildOutcome { at, outcome, .. }) = delivered {
                let what = format!("the outcome of {child}");
                let outcome = outcome.clone();
                let body = MessageBody::ChildEnded { run: child, outcome };
                lost.push(Undelivered { what, delivery: Delivery { to: parent, at: *at, body } });
            } else if !runs.contains_key(&child) {
                let what = format!("nothing is left of the run, and {parent} waits for it");
                self.add(&key::event(&child, 0), what, Remedy::Begin(child, start));
            }
        }
        lost
    }
}
