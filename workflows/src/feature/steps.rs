//! Checkpoints of a feature run, and the history prefix with which a fork begins.

use std::fmt;

use chrono::{DateTime, Utc};
use longhaul_engine::{Activity, Event, EventKind, Message, MessageBody, Position, RunId, cut};
use serde::{Deserialize, Serialize};

use crate::contracts::{
    Land, Landed, OpenWorktree, RefreshWorktree, Refreshed, Seal, SealInput, SealStep, Sealed,
    Worktree,
};

use crate::session::{SessionStart, SessionWorkflow};

use super::{FeatureProgress, MergeLease, MergeRequest, SessionEnded, SessionRequest, Stage};

/// The label of a fork: its source run and the position there, as `<run>@<position>`.
pub const FORKED_FROM: &str = "forked_from";
/// The label of a fork: the number of copied events.
pub const COPIED: &str = "copied";

/// A position in a history together with a commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// The position of the event that recorded it.
    pub position: Position,
    /// Its time.
    pub at: DateTime<Utc>,
    /// The head commit of the work.
    pub commit: String,
    /// The session that it sealed, if any.
    pub session: Option<u32>,
    /// The step that it ended.
    pub step: CheckpointStep,
}

/// The step that a checkpoint ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckpointStep {
    /// The work tree was opened.
    WorkTree,
    /// The target was merged into the work.
    TargetBroughtIn,
    /// Work was committed.
    Sealed(SealStep),
    /// The target branch moved there: a rollback can return to it, and no fork continues from it.
    Landed,
    /// A person took it, with this note.
    Taken(String),
}

impl Checkpoint {
    /// Whether the target branch moved there.
    pub fn is_landing(&self) -> bool {
        self.step == CheckpointStep::Landed
    }
}

impl fmt::Display for CheckpointStep {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WorkTree => formatter.write_str("work tree"),
            Self::TargetBroughtIn => formatter.write_str("target brought in"),
            Self::Sealed(step) => step.fmt(formatter),
            Self::Landed => formatter.write_str("landed"),
            Self::Taken(note) => formatter.write_str(note),
        }
    }
}

/// The beginning of a fork.
#[derive(Debug, Clone, PartialEq)]
pub struct Prefix {
    /// Its events, numbered from zero.
    pub events: Vec<Event>,
    /// The position of the last one in the old history.
    pub position: Position,
    /// The head commit of the work; `None`: there was no work tree yet.
    pub commit: Option<String>,
    /// The number of its sessions.
    pub sessions: u32,
}

/// The checkpoints of a segment of a history, oldest first.
pub fn checkpoints(segment: &[Event]) -> Vec<Checkpoint> {
    let mut session = None;
    let mut found = Vec::new();
    for event in segment {
        if let Some(number) = begun_session(event) {
            session = Some(number);
        }
        let EventKind::ActivityCompleted { name, input, output, .. } = &event.kind else {
            continue;
        };
        let (commit, session, step) = match name.as_str() {
            RefreshWorktree::NAME => (
                output.read::<Refreshed>().ok().map(|refreshed| refreshed.commit),
                None,
                CheckpointStep::TargetBroughtIn,
            ),
            OpenWorktree::NAME => (
                output.read::<Worktree>().ok().map(|tree| tree.head),
                None,
                CheckpointStep::WorkTree,
            ),
            Seal::NAME => {
                let Ok(SealInput { step, .. }) = input.read() else { continue };
                let commit = output.read::<Sealed>().ok().map(|sealed| sealed.commit);
                (commit, session, CheckpointStep::Sealed(step))
            }
            Land::NAME => (
                output.read::<Landed>().ok().map(|landed| landed.target_commit),
                None,
                CheckpointStep::Landed,
            ),
            _ => continue,
        };
        let Some(commit) = commit else { continue };
        let is_known = found.last().is_some_and(|last: &Checkpoint| last.commit == commit);
        if name == RefreshWorktree::NAME && is_known {
            continue;
        }
        found.push(Checkpoint { position: event.position, at: event.at, commit, session, step });
    }
    found
}

/// The history prefix of a fork at position `last`, without partial commands and without an
/// expired merge lease.
pub fn prefix(segment: &[Event], last: Position) -> Prefix {
    let mut last = last;
    loop {
        let (events, position) = cut(segment, last);
        let shorter = before_an_open_session(&events)
            .or_else(|| before_the_turn(&events))
            .or_else(|| before_an_unsealed_session(segment, &events, position));
        let shorter =
            shorter.or_else(|| before_the_permit(&events)).or_else(|| before_the_last_try(&events));
        let shorter = shorter.or_else(|| before_giving_up(&events));
        let Some(command) = shorter else {
            let commit = commit_at(segment, &events, position);
            let sessions = last_session(&events);
            return Prefix { events, position, commit, sessions };
        };
        last = begins(segment, command).saturating_sub(1);
    }
}

/// The end of a fork at position `last` such that its next session receives the notes in its
/// mailbox.
pub fn before_last_receive(segment: &[Event], last: Position) -> Position {
    let Prefix { events, position, .. } = prefix(segment, last);
    let is_step = |event: &Event| {
        matches!(event.kind, EventKind::ActivityCompleted { .. }) || is_session_ended(event)
    };
    let step = events.iter().rposition(is_step);
    let after = events.get(step.map_or(0, |step| step + 1)..).unwrap_or_default();
    let heard = after.iter().find(|event| matches!(event.kind, EventKind::MessageReceived { .. }));
    match heard.and_then(|event| event.kind.command()) {
        Some(command) => begins(segment, command).saturating_sub(1),
        None => position,
    }
}

/// The first event of the answer to a command.
fn begins(segment: &[Event], command: u32) -> Position {
    let first = segment.iter().find(|event| event.kind.command() == Some(command));
    first.map_or(0, |event| event.position)
}

/// Whether an event sends a signal of this name.
fn sends(event: &Event, wanted: &str) -> bool {
    matches!(&event.kind, EventKind::SignalSent { name, .. } if name == wanted)
}

/// The stage that an event publishes.
fn stage_of(event: &Event) -> Option<Stage> {
    match &event.kind {
        EventKind::StatusPublished { key, value, .. } if key == FeatureProgress::KEY => {
            value.read::<FeatureProgress>().ok()?.stage
        }
        _ => None,
    }
}

/// The command before which a fork must end, or its replay would assume the merge lease.
fn before_the_turn(events: &[Event]) -> Option<u32> {
    let requested = events.iter().rposition(|event| sends(event, MergeRequest::SIGNAL))?;
    let given_back = events[requested..].iter().any(|event| sends(event, MergeLease::RELEASED));
    if given_back { None } else { events[requested].kind.command() }
}

/// The command before which a fork must end, or its replay would assume a permit for a
/// session.
fn before_the_permit(events: &[Event]) -> Option<u32> {
    let requested = events.iter().rposition(|event| sends(event, SessionRequest::SIGNAL))?;
    let is_used = events[requested..]
        .iter()
        .any(|event| is_session_ended(event) || sends(event, SessionEnded::SIGNAL));
    if is_used { None } else { events[requested].kind.command() }
}

/// The command before which a fork must end, because its work was given up after it, or passed
/// without a session.
fn before_the_last_try(events: &[Event]) -> Option<u32> {
    let is_last_try = |event: &Event| stage_of(event) == Some(Stage::LastTry);
    let last = events.iter().rposition(is_last_try)?;
    let goes_on = events[last..].iter().any(is_session_ended);
    if goes_on { None } else { events[last].kind.command() }
}

/// The command before which a fork must end, because the work of its last session is in no commit.
fn before_an_unsealed_session(
    segment: &[Event],
    events: &[Event],
    position: Position,
) -> Option<u32> {
    let ended = events.iter().rposition(is_session_ended)?;
    let is_sealed = events[ended..].iter().any(|event| is_completed(event, Seal::NAME));
    if is_sealed || next_seal(segment, position).is_some() {
        return None;
    }
    events[ended].kind.command()
}

/// The command before which a fork must end, or it would have to give up in any case.
fn before_giving_up(events: &[Event]) -> Option<u32> {
    let (last, before) = events.split_last()?;
    let is_marked = |event: &Event| stage_of(event) == Some(Stage::GivingUp);
    let received_nothing = matches!(last.kind, EventKind::MessageReceived { message: None, .. })
        && before.last().is_some_and(is_marked);
    if received_nothing || is_marked(last) { last.kind.command() } else { None }
}

fn next_seal(segment: &[Event], position: Position) -> Option<&Event> {
    let mut later = segment.iter().filter(|event| event.position > position);
    later.find(|event| is_completed(event, Seal::NAME))
}

/// The commit of the last step, or, after a session, of its seal.
fn commit_at(segment: &[Event], events: &[Event], position: Position) -> Option<String> {
    let is_step = |event: &&Event| {
        is_session_ended(event)
            || [Seal::NAME, OpenWorktree::NAME, RefreshWorktree::NAME]
                .iter()
                .any(|name| is_completed(event, name))
    };
    let step = events.iter().rev().find(is_step)?;
    let step = if is_session_ended(step) { next_seal(segment, position)? } else { step };
    checkpoints(std::slice::from_ref(step)).pop().map(|checkpoint| checkpoint.commit)
}

fn last_session(events: &[Event]) -> u32 {
    events.iter().rev().find_map(begun_session).unwrap_or(0)
}

/// The number of the session that begins.
fn begun_session(event: &Event) -> Option<u32> {
    match &event.kind {
        EventKind::ChildStarted { workflow, input, .. } if workflow == SessionWorkflow::NAME => {
            Some(input.read::<SessionStart>().ok()?.session.number)
        }
        _ => None,
    }
}

/// The session that a child run was, if an event is its end.
fn ended_child(event: &Event) -> Option<&RunId> {
    match &event.kind {
        EventKind::MessageReceived {
            message: Some(Message { body: MessageBody::ChildEnded { run, .. }, .. }),
            ..
        } => Some(run),
        _ => None,
    }
}

fn is_session_ended(event: &Event) -> bool {
    ended_child(event).is_some()
}

/// The command before which a fork must end, or it would wait for a session of another run.
fn before_an_open_session(events: &[Event]) -> Option<u32> {
    let has_ended = |run: &RunId| events.iter().filter_map(ended_child).any(|ended| ended == run);
    events.iter().rev().find_map(|event| match &event.kind {
        EventKind::ChildStarted { run, .. } if !has_ended(run) => event.kind.command(),
        _ => None,
    })
}

fn is_completed(event: &Event, wanted: &str) -> bool {
    matches!(&event.kind, EventKind::ActivityCompleted { name, .. } if name == wanted)
}
