//! Commands against a history: the answer of each, or the divergence.

use std::time::Duration;

use chrono::DateTime;

use super::*;
use crate::activity::Call;
use crate::command::{Calls, ReadClock, Receive, Sleep, TryReceive};
use crate::context::Filter;
use crate::event::{Message, MessageBody, RequestedBy};
use crate::failure::Failure;
use crate::id::Slot;
use crate::payload::Payload;
use crate::policy::Policy;

/// An event of a call of `step`.
fn activity(kind: &str, command: u32, (call, calls): (u16, u16), input: &str) -> EventKind {
    let slot = Slot { command, call, calls };
    let name = "step".into();
    let input = Payload::of(input);
    match kind {
        "started" => EventKind::ActivityStarted { slot, name, input, attempt: 1 },
        "progressed" => EventKind::ActivityProgressed { slot, details: Payload::null() },
        "failed" => {
            let failure = Failure::retryable("no");
            let retry_at = Some(DateTime::UNIX_EPOCH);
            EventKind::ActivityFailed { slot, name, input, attempt: 1, failure, retry_at }
        }
        "completed" => {
            let output = Payload::of(&input.read::<String>().unwrap().to_uppercase());
            EventKind::ActivityCompleted { slot, name, input, attempt: 1, output }
        }
        other => panic!("{other} is not a kind"),
    }
}

fn completed(command: u32, of: (u16, u16), input: &str) -> EventKind {
    activity("completed", command, of, input)
}

fn cancelled(number: u32, command: &impl Command) -> EventKind {
    EventKind::CancelDelivered {
        command: number,
        digest: command.digest(),
        request: RequestedBy::default(),
    }
}

fn calls(inputs: &[&str]) -> Calls {
    let call = |input: &&str| Call {
        name: "step",
        input: Payload::of(input),
        policy: Policy::idempotent(),
    };
    Calls(inputs.iter().map(call).collect())
}

fn replay(kinds: Vec<EventKind>) -> Replay {
    let event = |(position, kind)| Event { position, at: DateTime::UNIX_EPOCH, kind };
    Replay::new((1..).zip(kinds).map(event), false)
}

/// A step in words.
fn shown<C: Command<Answer: std::fmt::Debug, Progress: std::fmt::Debug>>(
    replay: &mut Replay,
    command: &C,
) -> String {
    match replay.step(command) {
        Ok(Step::Recorded(answer)) => format!("{answer:?}"),
        Ok(Step::Cancelled) => "cancelled".into(),
        Ok(Step::Perform { number, progress: None }) => format!("perform {number}"),
        Ok(Step::Perform { number, progress: Some(_) }) => format!("go on with {number}"),
        Err(diverged) => diverged.to_string(),
    }
}

/// Several calls at once, against the history of a command.
#[track_caller]
fn check_calls(kinds: Vec<EventKind>, inputs: &[&str], expected: &str) {
    assert_eq!(shown(&mut replay(kinds), &calls(inputs)), expected);
}

fn both() -> Vec<EventKind> {
    vec![completed(0, (1, 2), "b"), completed(0, (0, 2), "a")]
}

#[test]
fn several_calls_are_answered_in_their_order_however_they_ended() {
    check_calls(both(), &["a", "b"], r#"[Ok("A"), Ok("B")]"#);
    check_calls(vec![completed(0, (1, 2), "b")], &["a", "b"], "go on with 0");
    check_calls(vec![], &["a", "b"], "perform 0");
}

#[test]
fn every_call_of_a_command_is_compared() {
    let differs = |position, recorded: &str, asked: &str| {
        format!(
            "diverged at position {position}: recorded call step {recorded}, asked call step {asked}"
        )
    };
    let second = differs(1, r#""b" (2 of 2 calls)"#, r#""c" (2 of 2 calls)"#);
    check_calls(both(), &["a", "c"], &second);
    check_calls(both(), &["c", "b"], &differs(2, r#""a" (1 of 2 calls)"#, r#""c" (1 of 2 calls)"#));
    // However far the record goes, and whatever kind of event it is.
    for kind in ["started", "failed"] {
        check_calls(vec![activity(kind, 0, (1, 2), "b")], &["a", "c"], &second);
        let late = second.replace("position 1", "position 2");
        check_calls(
            vec![completed(0, (0, 2), "a"), activity(kind, 0, (1, 2), "b")],
            &["a", "c"],
            &late,
        );
    }
}

#[test]
fn a_changed_number_of_calls_is_a_difference_even_where_the_record_breaks_off() {
    let one = r#"diverged at position 1: recorded call step "a" (1 of 2 calls), asked call step "a" (1 calls)"#;
    check_calls(vec![completed(0, (0, 2), "a")], &["a"], one);
    let three = vec![completed(0, (0, 2), "a"), completed(0, (1, 2), "b")];
    let more = concat!(
        r#"diverged at position 1: recorded call step "a" (1 of 2 calls), "#,
        r#"asked call step "a" and call step "b" and call step "c" (3 calls)"#
    );
    check_calls(three, &["a", "b", "c"], more);
    let progress = vec![activity("progressed", 0, (0, 2), "")];
    check_calls(
        progress,
        &["a"],
        "diverged at position 1: recorded ActivityProgressed, asked call step \"a\" (1 calls)",
    );
}

#[test]
fn an_event_of_another_kind_inside_a_group_is_a_difference() {
    let received = EventKind::MessageReceived { command: 0, message: None };
    let mixed = vec![activity("started", 0, (0, 1), "a"), received];
    check_calls(
        mixed,
        &["a"],
        r#"diverged at position 2: recorded receive a message, asked call step "a""#,
    );
    let twice = vec![EventKind::TimeRead { command: 0 }, EventKind::TimeRead { command: 0 }];
    let expected = "diverged at position 2: recorded read the clock, asked read the clock";
    assert_eq!(shown(&mut replay(twice), &ReadClock), expected);
    let fired = vec![EventKind::TimerFired { command: 0 }];
    assert_eq!(shown(&mut replay(fired.clone()), &Sleep(Duration::ZERO)), "()");
    assert!(
        shown(&mut replay([fired.clone(), fired].concat()), &Sleep(Duration::ZERO))
            .starts_with("diverged")
    );
}

#[test]
fn an_order_to_the_engine_is_no_message_for_a_workflow() {
    let message = |body| Message { seq: 1, at: DateTime::UNIX_EPOCH, body };
    let received =
        |body| vec![EventKind::MessageReceived { command: 0, message: Some(message(body)) }];
    let pause = received(MessageBody::Pause(RequestedBy::default()));
    let expected = "diverged at position 1: recorded receive a message, asked receive a message";
    assert_eq!(
        shown(&mut replay(pause), &Receive { filter: Filter::any(), timeout: None }),
        expected
    );
    let signal = received(MessageBody::signal("go", Payload::null()));
    assert!(
        shown(&mut replay(signal), &TryReceive { filter: Filter::any() })
            .starts_with("Some(Signal { name: \"go\"")
    );
}

#[test]
fn a_gap_between_commands_is_a_difference() {
    let expected =
        "diverged at position 1: recorded command 1 after command 0, asked read the clock";
    assert_eq!(shown(&mut replay(vec![EventKind::TimeRead { command: 1 }]), &ReadClock), expected);
}

#[test]
fn a_command_under_way_is_the_last_one_of_its_history() {
    let kinds = vec![activity("started", 0, (0, 1), "a"), EventKind::TimeRead { command: 1 }];
    check_calls(
        kinds,
        &["a"],
        r#"diverged at position 2: recorded read the clock, asked call step "a""#,
    );
}

#[test]
fn a_cancelled_command_is_compared_by_its_digest() {
    let long = "x".repeat(5000);
    let one = calls(&["a", &long]);
    let other = calls(&["a", &(long.clone() + "y")]);
    assert_eq!(shown(&mut replay(vec![cancelled(0, &one)]), &one), "cancelled");
    let diverged = shown(&mut replay(vec![cancelled(0, &one)]), &other);
    assert!(
        diverged.starts_with("diverged at position 1: recorded a cancelled command (digest "),
        "{diverged}"
    );
    assert!(diverged.contains("asked call step \"a\" and call step"), "{diverged}");
    let begun =
        |input: &str| vec![activity("started", 0, (0, 1), "a"), cancelled(0, &calls(&[input]))];
    check_calls(begun("a"), &["a"], "cancelled");
    let expected = r#"diverged at position 1: recorded call step "a", asked call step "b""#;
    check_calls(begun("b"), &["b"], expected);
}

#[test]
fn no_event_follows_the_answer_of_a_command() {
    let completed = activity("completed", 0, (0, 1), "a");
    let expected = r#"diverged at position 2: recorded call step "a", asked call step "a""#;
    check_calls(vec![completed.clone(), completed.clone()], &["a"], expected);
    let diverged =
        shown(&mut replay(vec![completed, cancelled(0, &calls(&["a"]))]), &calls(&["a"]));
    assert!(diverged.starts_with("diverged at position 2: recorded a cancelled command"));
}

#[test]
fn no_two_commands_share_a_digest() {
    let digests = [
        calls(&["a"]).digest(),
        calls(&["a", "b"]).digest(),
        calls(&["b", "a"]).digest(),
        calls(&["ab"]).digest(),
        ReadClock.digest(),
        TryReceive { filter: Filter::any() }.digest(),
        Receive { filter: Filter::any(), timeout: None }.digest(),
        Receive { filter: Filter::Children, timeout: None }.digest(),
        Receive { filter: Filter::signals(&[]), timeout: None }.digest(),
    ];
    for (index, digest) in digests.iter().enumerate() {
        assert!(!digests[..index].contains(digest), "digest {index} is not unique");
        assert_eq!(digest.to_string().try_into(), Ok(*digest));
    }
    let long_wait = Receive { filter: Filter::any(), timeout: Some(Duration::from_secs(9)) };
    assert_eq!(long_wait.digest(), digests[6], "a duration does not decide");
    assert!(CommandDigest::try_from("AB".to_owned()).is_err());
}
