//! Runs that wait for a child of which the log has lost everything: no message would ever end that wait.

use std::collections::{BTreeMap, HashSet};

use longhaul_engine::event::Cause;
use longhaul_engine::{Event, EventKind, Message, MessageBody, RunId};

use super::{Findings, Remedy};
use crate::carried;
use crate::key;
use crate::snapshot::Records;

/// A child that a run waits for.
#[derive(Debug)]
pub(super) struct Awaited {
    parent: RunId,
    child: RunId,
    /// The start of the child, as its parent recorded it. Labels are not in that record.
    start: Event,
}

/// The children whose outcome a run has neither taken nor in its mailbox.
pub(super) fn awaited(run: &RunId, events: &[Event], mail: &[Message]) -> Vec<Awaited> {
    if carried::fold(events).is_none_or(|summary| summary.status.is_terminal()) {
        return Vec::new();
    }
    let taken = events.iter().filter_map(|event| match &event.kind {
        EventKind::MessageReceived { message, .. } => message.as_ref(),
        _ => None,
    });
    let ended = |message: &Message| match &message.body {
        MessageBody::ChildEnded { run, .. } => Some(run.clone()),
        _ => None,
    };
    let ended: HashSet<RunId> = taken.chain(mail).filter_map(ended).collect();
    // What an earlier life of the run had started ended with that.
    let is_begin =
        |event: &Event| matches!(&event.kind, EventKind::RunStarted { cause, .. } if *cause != Cause::ContinuedAsNew);
    let begin = events.iter().rposition(is_begin).unwrap_or(0);
    let started = events[begin..].iter().filter_map(|event| match &event.kind {
        EventKind::ChildStarted { run: child, workflow, input, .. } if !ended.contains(child) => {
            let kind = EventKind::RunStarted {
                workflow: workflow.clone(),
                input: input.clone(),
                parent: Some(run.clone()),
                labels: BTreeMap::new(),
                cause: Cause::Started,
            };
            let start = Event { position: 0, at: event.at, kind };
            Some(Awaited { parent: run.clone(), child: child.clone(), start })
        }
        _ => None,
    });
    started.collect()
}

impl Findings {
    /// What is missing of the children that runs wait for. To be called when all runs were looked at.
    pub(super) fn lost_children(&mut self, runs: &BTreeMap<RunId, Records>) {
        for Awaited { parent, child, start } in std::mem::take(&mut self.awaited) {
            if !runs.contains_key(&child) {
                let what = format!("nothing is left of the run, and {parent} waits for it");
                self.add(&key::event(&child, 0), what, Remedy::Begin(child, start));
            }
        }
    }
}
