//! Text for people about commands and events, and the point where the two differ.

use crate::event::{EventKind, RequestedBy};
use crate::id::{RunId, Slot};
use crate::payload::Payload;

/// How many characters of a difference are shown.
const SHOWN: usize = 400;

/// How much is shown before the place where two texts differ.
const BEFORE: usize = 60;

pub(crate) const RECEIVE: &str = "receive a message";
pub(crate) const READ_CLOCK: &str = "read the clock";
pub(crate) const DRAW_ID: &str = "draw an id";

/// The text of a recorded event, comparable to
/// [`Command::text_beside`](crate::command::Command::text_beside).
pub(crate) fn recorded(kind: &EventKind) -> String {
    match kind {
        EventKind::ActivityStarted { slot, name, input, .. }
        | EventKind::ActivityFailed { slot, name, input, .. }
        | EventKind::ActivityCompleted { slot, name, input, .. } => {
            one_of(*slot, call(name, input))
        }
        EventKind::ChildStarted { run, workflow, input, .. } => start(run, workflow, input),
        EventKind::MessageAwaited { .. } | EventKind::MessageReceived { .. } => RECEIVE.into(),
        EventKind::SignalSent { to, name, payload, .. } => send(to, name, payload),
        EventKind::CancelSent { to, request, .. } => cancel(to, request),
        EventKind::TimerStarted { .. } => "sleep".into(),
        EventKind::TimeRead { .. } => READ_CLOCK.into(),
        EventKind::UuidDrawn { .. } => DRAW_ID.into(),
        EventKind::VersionMarked { change, .. } => version(change),
        EventKind::StatusPublished { key, value, .. } => publish(key, value),
        EventKind::CancelDelivered { digest, .. } => {
            format!("a cancelled command (digest {digest})")
        }
        other => other.name().into(),
    }
}

pub(crate) fn call(name: &str, input: &Payload) -> String {
    format!("call {name} {}", input.preview(usize::MAX))
}

/// One call of a command; its number is shown only if the command has several.
pub(crate) fn one_of(slot: Slot, call: String) -> String {
    if slot.calls > 1 {
        format!("{call} ({} of {} calls)", slot.call + 1, slot.calls)
    } else {
        call
    }
}

pub(crate) fn start(run: &RunId, workflow: &str, input: &Payload) -> String {
    format!("start {workflow} {run} {}", input.preview(usize::MAX))
}

pub(crate) fn send(to: &RunId, name: &str, payload: &Payload) -> String {
    format!("send {name} to {to} {}", payload.preview(usize::MAX))
}

pub(crate) fn cancel(run: &RunId, request: &RequestedBy) -> String {
    format!("cancel {run} by {}: {}", request.by, request.why)
}

pub(crate) fn publish(key: &str, value: &Payload) -> String {
    format!("publish {key} {}", value.preview(usize::MAX))
}

pub(crate) fn version(change: &str) -> String {
    format!("version of `{change}`")
}

/// Two strings, cut so that both show their beginning and the first difference.
pub(crate) fn difference(one: &str, other: &str) -> (String, String) {
    let same = one.chars().zip(other.chars()).take_while(|(one, other)| one == other).count();
    let cut = |text: &str| {
        let head: String = text.chars().take(BEFORE).collect();
        if same <= 2 * BEFORE {
            return truncated(text, SHOWN);
        }
        let rest: String = text.chars().skip(same - BEFORE).collect();
        format!("{head}…{}", truncated(&rest, SHOWN))
    };
    (cut(one), cut(other))
}

/// At most so many characters.
fn truncated(text: &str, limit: usize) -> String {
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
