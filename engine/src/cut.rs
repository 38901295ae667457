//! Cutting a history: selects the events with which a forked run begins, so that replay continues
//! at their end.

use crate::event::{Event, EventKind};
use crate::id::{Position, Slot};

/// The events of the first commands of a segment: its `RunStarted` and the answers of the commands
/// that were complete at position `last`, renumbered from zero. Notes (pauses, parkings) belong to
/// the original run and are left out. A cut never includes a cancellation, because the new run is
/// not cancelled.
///
/// Returns the events, and the position of the last one in the old history.
pub fn cut(segment: &[Event], last: Position) -> (Vec<Event>, Position) {
    let Some((first, rest)) = segment.split_first() else { return (Vec::new(), 0) };
    let mut kept = vec![first];
    let answers: Vec<&Event> = rest.iter().filter(|event| event.kind.command().is_some()).collect();
    for group in answers.chunk_by(|one, next| one.kind.command() == next.kind.command()) {
        let ends_in_time = group.last().is_some_and(|event| event.position <= last);
        if !ends_in_time || !is_answered(group) {
            break;
        }
        kept.extend(group);
    }
    let end = kept.last().map_or(first.position, |event| event.position);
    let renumbered = (0..).zip(kept).map(|(position, event)| Event { position, ..event.clone() });
    (renumbered.collect(), end)
}

/// Whether a command has its answer: for activities, that of each call.
fn is_answered(group: &[&Event]) -> bool {
    if group.iter().any(|event| matches!(event.kind, EventKind::CancelDelivered { .. })) {
        return false;
    }
    let has_ended = |slot: Slot| {
        group.iter().any(|event| match &event.kind {
            EventKind::ActivityCompleted { slot: ended, .. }
            | EventKind::ActivityFailed { slot: ended, retry_at: None, .. } => *ended == slot,
            _ => false,
        })
    };
    let any = group.iter().find_map(|event| event.kind.slot());
    let all_ended =
        any.is_none_or(|slot| (0..slot.calls).all(|call| has_ended(Slot { call, ..slot })));
    let last = group.last().map(|event| &event.kind);
    all_ended
        && !matches!(last, Some(EventKind::MessageAwaited { .. } | EventKind::TimerStarted { .. }))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use chrono::DateTime;

    use super::*;
    use crate::event::{Cause, CommandDigest, Message, MessageBody, RequestedBy};
    use crate::failure::Failure;
    use crate::payload::Payload;

    fn started() -> EventKind {
        let workflow = "w".into();
        let labels = BTreeMap::new();
        EventKind::RunStarted {
            workflow,
            input: Payload::null(),
            parent: None,
            labels,
            cause: Cause::Started,
        }
    }

    fn begun(slot: Slot) -> EventKind {
        EventKind::ActivityStarted { slot, name: "a".into(), input: Payload::null(), attempt: 1 }
    }

    fn done(slot: Slot) -> EventKind {
        let name = "a".into();
        let input = Payload::null();
        EventKind::ActivityCompleted { slot, name, input, attempt: 1, output: Payload::null() }
    }

    fn failed(command: u32, is_last: bool) -> EventKind {
        let slot = Slot::only(command);
        let name = "a".into();
        let input = Payload::null();
        let retry_at = (!is_last).then_some(DateTime::UNIX_EPOCH);
        EventKind::ActivityFailed {
            slot,
            name,
            input,
            attempt: 1,
            failure: Failure::terminal("no"),
            retry_at,
        }
    }

    fn received(command: u32) -> EventKind {
        let body = MessageBody::signal("s", Payload::null());
        let message = Some(Message { seq: 1, at: DateTime::UNIX_EPOCH, body });
        EventKind::MessageReceived { command, message }
    }

    fn cancelled(command: u32) -> EventKind {
        EventKind::CancelDelivered {
            command,
            digest: CommandDigest([0; 32]),
            request: RequestedBy::default(),
        }
    }

    /// Cuts a segment that begins at position 10 at each of its events; returns the number of
    /// events kept and the position of the last.
    fn check(kinds: Vec<EventKind>, expected: &[(usize, Position)]) {
        let events = (10..).zip(kinds).map(|(position, kind)| Event {
            position,
            at: DateTime::UNIX_EPOCH,
            kind,
        });
        let segment: Vec<Event> = events.collect();
        let cuts: Vec<_> = segment.iter().map(|event| cut(&segment, event.position)).collect();
        for (kept, _) in &cuts {
            let positions: Vec<Position> = kept.iter().map(|event| event.position).collect();
            assert_eq!(
                positions,
                (0..kept.len() as Position).collect::<Vec<_>>(),
                "renumbered from zero"
            );
        }
        assert_eq!(cuts.iter().map(|(kept, end)| (kept.len(), *end)).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_cut_ends_behind_the_last_complete_command() {
        check(
            vec![
                started(),
                begun(Slot::only(0)),
                done(Slot::only(0)),
                EventKind::TimeRead { command: 1 },
            ],
            &[(1, 10), (1, 10), (3, 12), (4, 13)],
        );
        let waiting = EventKind::MessageAwaited { command: 0, deadline: None };
        check(vec![started(), waiting, received(0)], &[(1, 10), (1, 10), (3, 12)]);
        check(vec![started(), failed(0, false), failed(0, true)], &[(1, 10), (1, 10), (3, 12)]);
    }

    #[test]
    fn of_several_calls_at_once_all_must_have_ended() {
        let [first, second] = [0, 1].map(|call| Slot { command: 0, call, calls: 2 });
        check(
            vec![started(), done(second), begun(first), done(first)],
            &[(1, 10), (1, 10), (1, 10), (4, 13)],
        );
        check(vec![started(), done(second), begun(first)], &[(1, 10), (1, 10), (1, 10)]);
        check(vec![started(), done(second)], &[(1, 10), (1, 10)]);
    }

    #[test]
    fn notes_are_left_out_and_nothing_follows_on_a_cancellation() {
        let paused = EventKind::RunPaused(RequestedBy::default());
        check(
            vec![started(), done(Slot::only(0)), paused, done(Slot::only(1))],
            &[(1, 10), (2, 11), (2, 11), (3, 13)],
        );
        check(
            vec![
                started(),
                done(Slot::only(0)),
                begun(Slot::only(1)),
                cancelled(1),
                done(Slot::only(2)),
                EventKind::RunCancelled,
            ],
            &[(1, 10), (2, 11), (2, 11), (2, 11), (2, 11), (2, 11)],
        );
    }
}
