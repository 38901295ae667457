//! Replay: why a run survives a crash. A pure state machine: a command goes in; its recorded
//! answer, or the instruction to perform it, comes out.
//!
//! The events of a segment are grouped by the command that they answer. The n-th command of the
//! workflow is compared with the n-th group, and with every event of it. A command that is not the
//! recorded one is [`Diverged`]: nothing is appended, and no other run is affected.

use std::collections::VecDeque;

use crate::command::{Command, MarkVersion, Record};
use crate::describe::{self, difference};
use crate::diverged::Diverged;
use crate::event::{CommandDigest, Event, EventKind};

/// The next step of a command.
pub(crate) enum Step<C: Command> {
    /// The answer is recorded.
    Recorded(C::Answer),
    /// The command was cancelled.
    Cancelled,
    /// Perform it, from the end of its record.
    Perform {
        /// The number of the command.
        number: u32,
        /// Its partial record; `None`: no record.
        progress: Option<C::Progress>,
    },
}

/// The recorded events of one segment, and the position of the workflow in them.
#[derive(Debug)]
pub(crate) struct Replay {
    groups: VecDeque<(u32, Vec<Event>)>,
    next: u32,
    versions: Vec<(String, u32)>,
    /// Whether the end of the segment is recorded, so that no command can follow.
    has_ended: bool,
}

impl Replay {
    /// The replay of a segment: the events after its `RunStarted`.
    pub(crate) fn new(events: impl IntoIterator<Item = Event>, has_ended: bool) -> Self {
        let mut groups: VecDeque<(u32, Vec<Event>)> = VecDeque::new();
        for event in events {
            let Some(command) = event.kind.command() else { continue };
            match groups.back_mut() {
                Some((last, group)) if *last == command => group.push(event),
                _ => groups.push_back((command, vec![event])),
            }
        }
        Self { groups, next: 0, versions: Vec::new(), has_ended }
    }

    /// The number of commands of this segment that were answered or begun.
    pub(crate) fn commands(&self) -> u32 {
        self.next
    }

    /// Compares the next command of the workflow with the history.
    pub(crate) fn step<C: Command>(&mut self, command: &C) -> Result<Step<C>, Box<Diverged>> {
        let number = self.next;
        let Some((recorded, mut group)) = self.groups.pop_front() else {
            self.next += 1;
            return Ok(Step::Perform { number, progress: None });
        };
        if recorded != number {
            return Err(differs(command, group.first(), |_| {
                format!("command {recorded} after command {number}")
            })
            .into());
        }
        self.next += 1;
        if let Some(EventKind::CancelDelivered { digest, .. }) =
            group.last().map(|event| &event.kind)
        {
            let digest = *digest;
            let cancelled = group.pop();
            return cancelled_step(command, digest, cancelled.as_ref(), group);
        }
        match command.read(group) {
            Ok(Record::Complete(answer)) => Ok(Step::Recorded(answer)),
            Ok(Record::UnderWay(progress)) => match self.groups.front() {
                None => Ok(Step::Perform { number, progress: Some(progress) }),
                // A command under way is the last one of its history.
                Some((_, next)) => Err(differs(command, next.first(), describe::recorded).into()),
            },
            Err(event) => Err(differs(command, Some(&event), describe::recorded).into()),
        }
    }

    /// Compares the end of the workflow with the history: no events may be left.
    pub(crate) fn end(&self, how: &str) -> Result<(), Box<Diverged>> {
        let Some(event) = self.groups.front().and_then(|(_, group)| group.first()) else {
            return Ok(());
        };
        Err(diverged(event, &describe::recorded(&event.kind), &format!("end: {how}")).into())
    }

    /// Remembers a newly recorded version marker.
    pub(crate) fn marked(&mut self, change: &str, version: u32) {
        self.versions.push((change.to_owned(), version));
    }

    /// A version that needs no command: recorded before in this run, or older than the change.
    pub(crate) fn known_version(&mut self, mark: &MarkVersion) -> Option<u32> {
        if let Some((_, version)) = self.versions.iter().find(|(known, _)| *known == mark.change) {
            return Some(*version);
        }
        let is_older = match self.groups.front() {
            Some((_, group)) => {
                let kind = &group[0].kind;
                !matches!(kind, EventKind::VersionMarked { change, .. } if *change == mark.change)
            }
            // A segment that ended without a marker passed this point before the change existed.
            None => self.has_ended,
        };
        if !is_older {
            return None;
        }
        self.marked(&mark.change, 0);
        Some(0)
    }
}

/// A command whose record ends with its cancellation: the same command, begun in the same way, must
/// follow.
fn cancelled_step<C: Command>(
    command: &C,
    recorded: CommandDigest,
    cancelled: Option<&Event>,
    begun: Vec<Event>,
) -> Result<Step<C>, Box<Diverged>> {
    if !begun.is_empty() {
        match command.read(begun) {
            Ok(Record::UnderWay(_)) => {}
            Ok(Record::Complete(answer)) if C::gives_way_to_cancel(&answer) => {}
            Ok(Record::Complete(_)) => {
                return Err(differs(command, cancelled, describe::recorded).into());
            }
            Err(event) => return Err(differs(command, Some(&event), describe::recorded).into()),
        }
    }
    if command.digest() != recorded {
        return Err(differs(command, cancelled, describe::recorded).into());
    }
    Ok(Step::Cancelled)
}

fn differs<C: Command>(
    command: &C,
    event: Option<&Event>,
    recorded: impl Fn(&EventKind) -> String,
) -> Diverged {
    // A group always has at least one event.
    let event = event.expect("a recorded command has an event");
    let asked = match &event.kind {
        EventKind::CancelDelivered { .. } => {
            format!("{} (digest {})", command.text(), command.digest())
        }
        kind => command.text_beside(kind),
    };
    diverged(event, &recorded(&event.kind), &asked)
}

fn diverged(event: &Event, recorded: &str, asked: &str) -> Diverged {
    let (recorded, asked) = difference(recorded, asked);
    Diverged { position: event.position, recorded, asked }
}

#[cfg(test)]
mod tests;
