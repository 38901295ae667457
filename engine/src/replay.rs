//! Replay: why a run survives a crash. A pure machine: a command goes in; what was recorded for it, or the order to
//! perform it, comes out.
//!
//! The events of a segment are sorted by the command that they answer. The n-th command of the workflow is held against
//! the n-th group. A command that is not the recorded one is [`Diverged`]: nothing is appended, no other run is harmed.

use std::collections::VecDeque;
use std::time::Duration;

use chrono::{DateTime, Utc};
use uuid::Uuid;

use crate::activity::Call;
use crate::context::{Child, Received};
use crate::describe::{describe, difference, in_full, recorded_in_full};
use crate::event::{Event, EventKind};
use crate::failure::{Failure, FailureKind};
use crate::id::{Position, RunId};
use crate::payload::Payload;

/// What a workflow asks.
#[derive(Debug, Clone)]
pub enum Command {
    /// Call activities.
    Call(Vec<Call>),
    /// Start a child run.
    Start(Child),
    /// Wait for a message.
    Receive {
        /// For how long.
        timeout: Option<Duration>,
    },
    /// Take a message if there is one.
    TryReceive,
    /// Signal another run.
    Send {
        /// Whose mailbox.
        to: RunId,
        /// The name of the signal.
        name: String,
        /// Its content.
        payload: Payload,
    },
    /// Wait.
    Sleep(Duration),
    /// Read the clock.
    Now,
    /// Draw a unique id.
    Uuid,
    /// Publish a value.
    Publish {
        /// The name of the value.
        key: String,
        /// The value.
        value: Payload,
    },
    /// Mark a change of the code.
    Version {
        /// The name of the change.
        change: String,
        /// The version that new runs follow.
        latest: u32,
    },
    /// End.
    End {
        /// How, for people.
        how: &'static str,
    },
}

/// The code asks something else than its history recorded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("diverged at position {position}: recorded {recorded}, asked {asked}")]
pub struct Diverged {
    /// Where in the history.
    pub position: Position,
    /// What the history holds there.
    pub recorded: String,
    /// What the code asks now.
    pub asked: String,
}

/// What replay says to a command.
#[derive(Debug, Clone)]
pub enum Step {
    /// The result is known; do nothing.
    Recorded(Answer),
    /// Perform it, from where the record ends.
    Perform(u32, Progress),
}

/// A recorded result.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// Of activities.
    Results(Vec<Result<Payload, Failure>>),
    /// Of a receive.
    Message(Option<Received>),
    /// Of reading the clock.
    Time(DateTime<Utc>),
    /// Of drawing an id.
    Uuid(Uuid),
    /// Of a version.
    Version(u32),
    /// Of a command that gives nothing.
    Done,
    /// The command was cancelled.
    Cancelled,
}

/// How far the performance of a command is recorded.
#[derive(Debug, Clone, PartialEq)]
pub enum Progress {
    /// Not at all.
    New,
    /// Activities: the state of each call.
    Calls(Vec<CallState>),
    /// A wait that began, and when it ends.
    Waiting(Option<DateTime<Utc>>),
}

/// The recorded state of one call.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CallState {
    /// Its result, if it has one.
    pub result: Option<Result<Payload, Failure>>,
    /// Attempts that were made, whatever became of them.
    pub attempts: u32,
    /// Attempts that failed in a way that counts against the policy.
    pub failed: u32,
    /// Set while the outcome of the last guarded attempt is unknown.
    pub unknown: bool,
    /// When the next attempt is due.
    pub retry_at: Option<DateTime<Utc>>,
    /// What the last attempt recorded.
    pub progress: Option<Payload>,
}

/// The recorded events of one segment, and how far the workflow has come through them.
#[derive(Debug)]
pub struct Replay {
    groups: VecDeque<(u32, Vec<Event>)>,
    next: u32,
    versions: Vec<(String, u32)>,
}

impl Replay {
    /// The replay of a segment: the events after its `RunStarted`.
    pub fn new(events: impl IntoIterator<Item = Event>) -> Self {
        let mut groups: VecDeque<(u32, Vec<Event>)> = VecDeque::new();
        for event in events {
            let Some(command) = event.kind.command() else { continue };
            match groups.back_mut() {
                Some((last, group)) if *last == command => group.push(event),
                _ => groups.push_back((command, vec![event])),
            }
        }
        Self { groups, next: 0, versions: Vec::new() }
    }

    /// How many commands of this segment have been answered or begun.
    pub fn commands(&self) -> u32 {
        self.next
    }

    /// Holds the next command of the workflow against the history.
    pub fn step(&mut self, command: &Command) -> Result<Step, Box<Diverged>> {
        if let Command::Version { change, .. } = command
            && let Some(answer) = self.known_version(change)
        {
            return Ok(Step::Recorded(Answer::Version(answer)));
        }
        let Some((number, group)) = self.groups.pop_front() else {
            return Ok(Step::Perform(self.take_number(), Progress::New));
        };
        if let Err(recorded) = matches(command, &group[0].kind) {
            let (recorded, asked) = difference(&recorded, &in_full(command));
            let diverged = Diverged { position: group[0].position, recorded, asked };
            self.groups.push_front((number, group));
            return Err(Box::new(diverged));
        }
        self.next = number + 1;
        let step = fold(command, number, group);
        if let (Command::Version { change, .. }, Step::Recorded(Answer::Version(version))) = (command, &step) {
            self.versions.push((change.clone(), *version));
        }
        Ok(step)
    }

    /// Remembers a version that was marked just now.
    pub fn marked(&mut self, change: &str, version: u32) {
        self.versions.push((change.to_owned(), version));
    }

    /// A version that needs no event: marked before in this run, or older than the change.
    fn known_version(&mut self, change: &str) -> Option<u32> {
        if let Some((_, version)) = self.versions.iter().find(|(known, _)| known == change) {
            return Some(*version);
        }
        let (_, group) = self.groups.front()?;
        let is_marked = matches!(&group[0].kind, EventKind::VersionMarked { change: marked, .. } if marked == change);
        if is_marked {
            return None;
        }
        self.versions.push((change.to_owned(), 0));
        Some(0)
    }

    fn take_number(&mut self) -> u32 {
        self.next += 1;
        self.next - 1
    }
}

/// Whether the first event of a group answers this command; if not, what it answers.
fn matches(command: &Command, first: &EventKind) -> Result<(), String> {
    let fits = match (command, first) {
        (command, EventKind::CancelDelivered { asked, .. }) => *asked == describe(command),
        (
            Command::Call(calls),
            EventKind::ActivityStarted { slot, name, input, .. }
            | EventKind::ActivityFailed { slot, name, input, .. }
            | EventKind::ActivityCompleted { slot, name, input, .. },
        ) => calls.get(slot.call as usize).is_some_and(|call| call.name == name && call.input == *input),
        (Command::Start(child), EventKind::ChildStarted { run, workflow, input, .. }) => {
            child.run == *run && child.workflow == workflow && child.input == *input
        }
        (Command::Call(_), EventKind::ActivityProgressed { .. })
        | (Command::Receive { .. }, EventKind::MessageAwaited { .. } | EventKind::MessageReceived { .. })
        | (Command::TryReceive, EventKind::MessageReceived { .. })
        | (Command::Sleep(_), EventKind::TimerStarted { .. })
        | (Command::Now, EventKind::TimeRead { .. })
        | (Command::Uuid, EventKind::UuidDrawn { .. }) => true,
        (
            Command::Send { to, name, payload },
            EventKind::SignalSent { to: sent, name: called, payload: content, .. },
        ) => to == sent && name == called && payload == content,
        // Nothing is decided by what people are shown, and a later release may show more.
        (Command::Publish { key, .. }, EventKind::StatusPublished { key: published, .. }) => key == published,
        (Command::Version { change, .. }, EventKind::VersionMarked { change: marked, .. }) => change == marked,
        _ => false,
    };
    if fits { Ok(()) } else { Err(recorded_in_full(first)) }
}

/// What the events of a command amount to.
fn fold(command: &Command, number: u32, group: Vec<Event>) -> Step {
    let mut calls = match command {
        Command::Call(calls) => vec![CallState::default(); calls.len()],
        _ => Vec::new(),
    };
    let mut waiting = None;
    for event in group {
        match event.kind {
            EventKind::CancelDelivered { .. } => return Step::Recorded(Answer::Cancelled),
            EventKind::ActivityStarted { slot, attempt, .. } => {
                if let Some(call) = calls.get_mut(slot.call as usize) {
                    call.attempts = attempt;
                    call.unknown = true;
                    call.retry_at = None;
                }
            }
            EventKind::ActivityProgressed { slot, details } => {
                if let Some(call) = calls.get_mut(slot.call as usize) {
                    call.progress = Some(details);
                }
            }
            EventKind::ActivityFailed { slot, attempt, failure, retry_at, .. } => {
                if let Some(call) = calls.get_mut(slot.call as usize) {
                    call.record_failure(attempt, failure, retry_at);
                }
            }
            EventKind::ActivityCompleted { slot, output, .. } => {
                if let Some(call) = calls.get_mut(slot.call as usize) {
                    call.result = Some(Ok(output));
                }
            }
            EventKind::RunReconciled { slot, landed, .. } => {
                if let Some(call) = calls.get_mut(slot.call as usize) {
                    call.unknown = landed;
                }
            }
            EventKind::MessageAwaited { deadline, .. } => waiting = Some(deadline),
            EventKind::TimerStarted { fire_at, .. } => waiting = Some(Some(fire_at)),
            EventKind::MessageReceived { message, .. } => {
                return Step::Recorded(Answer::Message(message.and_then(Received::from_message)));
            }
            EventKind::TimeRead { .. } => return Step::Recorded(Answer::Time(event.at)),
            EventKind::UuidDrawn { uuid, .. } => return Step::Recorded(Answer::Uuid(uuid)),
            EventKind::VersionMarked { version, .. } => return Step::Recorded(Answer::Version(version)),
            _ => return Step::Recorded(Answer::Done),
        }
    }
    if let Some(until) = waiting {
        return Step::Perform(number, Progress::Waiting(until));
    }
    match calls.iter().map(|call| call.result.clone()).collect() {
        Some(results) => Step::Recorded(Answer::Results(results)),
        None => Step::Perform(number, Progress::Calls(calls)),
    }
}

impl CallState {
    /// Takes the failure of an attempt in.
    pub fn record_failure(&mut self, attempt: u32, failure: Failure, retry_at: Option<DateTime<Utc>>) {
        self.attempts = attempt;
        self.unknown = false;
        self.retry_at = retry_at;
        if !matches!(failure.kind, FailureKind::RateLimited { .. }) {
            self.failed += 1;
        }
        if retry_at.is_none() {
            self.result = Some(Err(failure));
        }
    }
}
