//! Commands in words, for people: what was asked, what was recorded, and where the two differ.

use crate::event::EventKind;
use crate::id::RunId;
use crate::payload::Payload;
use crate::replay::Command;

/// How much of a payload is shown. Histories hold such texts (of commands that were cancelled): do not change it.
const SHOWN: usize = 400;

/// How much is shown before the place where two texts differ.
const BEFORE: usize = 60;

/// What a command asks, for people.
pub(crate) fn describe(command: &Command) -> String {
    words(command, SHOWN)
}

/// What a command asks, whole.
pub(crate) fn in_full(command: &Command) -> String {
    words(command, usize::MAX)
}

fn words(command: &Command, limit: usize) -> String {
    match command {
        Command::Call(calls) => {
            let calls: Vec<_> = calls.iter().map(|call| shown_call(call.name, &call.input, limit)).collect();
            calls.join(" and ")
        }
        Command::Start(child) => shown_start(&child.run, child.workflow, &child.input, limit),
        Command::Receive { .. } => "receive a message".into(),
        Command::TryReceive => "look for a message".into(),
        Command::Send { to, name, payload } => shown_send(to, name, payload, limit),
        Command::Sleep(duration) => format!("sleep {duration:?}"),
        Command::Now => "read the clock".into(),
        Command::Uuid => "draw an id".into(),
        Command::Publish { key, value } => shown_publish(key, value, limit),
        Command::Version { change, .. } => format!("version of `{change}`"),
        Command::End { how } => format!("end: {how}"),
    }
}

/// What an event recorded, in the words of [`in_full`].
pub(crate) fn recorded_in_full(kind: &EventKind) -> String {
    let limit = usize::MAX;
    match kind {
        EventKind::ActivityStarted { name, input, .. }
        | EventKind::ActivityFailed { name, input, .. }
        | EventKind::ActivityCompleted { name, input, .. } => shown_call(name, input, limit),
        EventKind::ChildStarted { run, workflow, input, .. } => shown_start(run, workflow, input, limit),
        EventKind::MessageAwaited { .. } | EventKind::MessageReceived { .. } => "receive a message".into(),
        EventKind::SignalSent { to, name, payload, .. } => shown_send(to, name, payload, limit),
        EventKind::TimerStarted { .. } => "sleep".into(),
        EventKind::TimeRead { .. } => "read the clock".into(),
        EventKind::UuidDrawn { .. } => "draw an id".into(),
        EventKind::VersionMarked { change, .. } => format!("version of `{change}`"),
        EventKind::StatusPublished { key, value, .. } => shown_publish(key, value, limit),
        EventKind::CancelDelivered { asked, .. } => asked.clone(),
        other => other.name().into(),
    }
}

fn shown_call(name: &str, input: &Payload, limit: usize) -> String {
    format!("call {name} {}", input.preview(limit))
}

fn shown_start(run: &RunId, workflow: &str, input: &Payload, limit: usize) -> String {
    format!("start {workflow} {run} {}", input.preview(limit))
}

fn shown_send(to: &RunId, name: &str, payload: &Payload, limit: usize) -> String {
    format!("send {name} to {to} {}", payload.preview(limit))
}

fn shown_publish(key: &str, value: &Payload, limit: usize) -> String {
    format!("publish {key} {}", value.preview(limit))
}

/// Two texts, cut so that both show how they begin and where they differ.
pub(crate) fn difference(one: &str, other: &str) -> (String, String) {
    let same = one.chars().zip(other.chars()).take_while(|(one, other)| one == other).count();
    let cut = |text: &str| {
        let head: String = text.chars().take(BEFORE).collect();
        if same <= 2 * BEFORE {
            return ended(text, SHOWN);
        }
        let rest: String = text.chars().skip(same - BEFORE).collect();
        format!("{head}…{}", ended(&rest, SHOWN))
    };
    (cut(one), cut(other))
}

/// At most so many characters.
fn ended(text: &str, limit: usize) -> String {
    let mut short: String = text.chars().take(limit).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_far_inside_is_shown() {
        let text = |last: &str| format!("call work {}{last}{}", "x".repeat(5000), "y".repeat(5000));
        let (one, other) = difference(&text("é1"), &text("é2"));
        assert!(one.starts_with("call work xxx") && one.contains("xé1y"), "{one}");
        assert!(other.contains("xé2y") && other.chars().count() < 500, "{other}");
        assert_eq!(difference("sleep", "draw an id"), ("sleep".into(), "draw an id".into()));
        assert_eq!(difference("a", "ab"), ("a".into(), "ab".into()));
    }
}
