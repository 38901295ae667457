//! Histories of the past: the workflows of today must decide as those did that recorded them.
//!
//! `tests/histories/*.jsonl` were recorded from the real workflows in a world of scripted
//! activities. From the first release on, a change of a workflow that makes one of them diverge
//! stops such runs of users half-way: put it behind [`version`](longhaul_engine::Context::version).
//! `LONGHAUL_RECORD=1 cargo test -p longhaul-tests --test suite golden` records them anew: then
//! only for a story that is new, until then after each change; nothing else ever writes them.

mod batch;
mod outage;
mod recorded;
mod world;

use std::collections::BTreeSet;
use std::sync::Once;

use longhaul_engine::{Activity, Event, EventKind, Payload, Position, RunId, verify};
use longhaul_storage::history_file;
use longhaul_tests::history::workflows;
use longhaul_workflows::contracts::{RunChecks, Seal};

use recorded::{STORIES, Story};

/// The text of a recorded history. Under `LONGHAUL_RECORD` all are recorded first.
fn text(story: &Story) -> String {
    static RECORDING: Once = Once::new();
    RECORDING.call_once(|| {
        if std::env::var_os("LONGHAUL_RECORD").is_some() {
            recorded::record();
        }
    });
    let path = recorded::path(story.name);
    std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("{} cannot be read: {error}", path.display()))
}

fn history(story: &Story) -> (RunId, Vec<Event>) {
    history_file::read(&text(story)).unwrap_or_else(|error| panic!("{}: {error}", story.name))
}

/// Changes the first of the stories in one event, as a file, and checks what verifying it says.
#[track_caller]
fn check_diverges(
    change: impl Fn(&mut EventKind) -> bool,
    position: Position,
    recorded: &str,
    asked: &str,
) {
    let (run, mut events) = history(&STORIES[0]);
    assert!(events.iter_mut().any(|event| change(&mut event.kind)), "there is an event to change");
    let changed = history_file::write(&run, &events).unwrap();
    let (run, events) = history_file::read(&changed).unwrap();
    let diverged =
        verify(&workflows(), &run, &events).unwrap().expect("the change is found").to_string();
    let begins = format!("diverged at position {position}: recorded ");
    let (was, is) = diverged
        .strip_prefix(&begins)
        .unwrap_or(&diverged)
        .split_once(", asked ")
        .unwrap_or_default();
    assert!(was.contains(recorded) && is.contains(asked), "{diverged}");
}

#[test]
fn the_workflows_of_today_decide_as_those_of_the_past() {
    for story in &STORIES {
        let (run, events) = history(story);
        let diverged = verify(&workflows(), &run, &events).unwrap();
        assert!(diverged.is_none(), "{}: {}", story.name, diverged.unwrap());
    }
}

#[test]
fn recorded_histories_are_written_again_byte_for_byte() {
    for story in &STORIES {
        let (run, events) = history(story);
        assert!(
            history_file::write(&run, &events).unwrap() == text(story),
            "{} is written otherwise",
            story.name
        );
    }
}

#[test]
fn every_story_is_recorded_and_tells_what_it_is_to_tell() {
    for story in &STORIES {
        let text = text(story);
        let mut rest = text.as_str();
        for told in story.tells {
            (_, rest) = rest
                .split_once(told)
                .unwrap_or_else(|| panic!("{} does not tell {told}", story.name));
        }
    }
    let there = std::fs::read_dir(recorded::path("x").parent().unwrap()).unwrap();
    let there: BTreeSet<_> = there.map(|file| file.unwrap().path()).collect();
    assert_eq!(
        there,
        STORIES.map(|story| recorded::path(story.name)).into(),
        "each file is one of the stories"
    );
}

#[test]
fn an_activity_that_is_not_requested_is_found_at_its_position() {
    let rename = |kind: &mut EventKind| {
        let EventKind::ActivityCompleted { name, .. } = kind else { return false };
        let is_seal = name == Seal::NAME;
        if is_seal {
            "stamp".clone_into(name);
        }
        is_seal
    };
    check_diverges(
        rename,
        13,
        r#"call stamp {"project":{"id":"shop","#,
        r#"call seal {"project":{"id":"shop","#,
    );
}

#[test]
fn another_answer_is_found_where_it_makes_the_next_decision_another() {
    let fail = |kind: &mut EventKind| {
        let EventKind::ActivityCompleted { name, output, .. } = kind else { return false };
        let is_check = name == RunChecks::NAME;
        if is_check {
            let report = output.preview(usize::MAX).replace(r#""exit_code":0"#, r#""exit_code":1"#);
            *output = Payload::from_bytes(report.as_bytes());
        }
        is_check
    };
    check_diverges(fail, 6, r#"call precheck {"project""#, r#""reason":"repair""#);
}

#[test]
fn another_end_is_found_at_the_end() {
    let empty = |kind: &mut EventKind| {
        let EventKind::RunCompleted { output } = kind else { return false };
        *output = Payload::null();
        true
    };
    check_diverges(empty, 30, "complete with null", r#"complete with {"outcome":"passed","#);
}
